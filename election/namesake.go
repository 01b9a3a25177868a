package election

import (
	"math"
	"slices"
	"sync"
	"time"
)

// namesake is what a node finds under its own name: the beat of its previous session, or of another supervisor, which must be renamed.
type namesake struct {
	beat
	began  time.Duration // when it was found
	moves  int           // heartbeats that were seen since
	nagged time.Duration // when the log said last that there is another supervisor
}

// nagging is how often the log repeats that.
const nagging = time.Minute

// meet notes what is there, and logs it. It reports whether the beat is over, and else how long to wait for that.
func (n *namesake) meet(s *Session, path string, v view, in <-chan struct{}) (over bool, left time.Duration) {
	now, longest, me := s.cfg.Now(), s.Longest(), s.cfg.Node
	found := !n.seen || n.of.session != v.stat.EphemeralOwner
	if found {
		*n = namesake{beat: beat{of: beatOf{me.Node, v.stat.EphemeralOwner}}, began: now}
	}
	was := n.sight
	n.saw(v, look{now: now, in: in, every: beatEvery(s.LeaseLength()), longest: longest})
	if !found && n.sight != was {
		n.moves++
	}
	holder, err := decode[Node](v.data)
	other := err == nil && (holder.Host != me.Host || holder.Machine != me.Machine)
	switch alive := n.moves > 0 && now-n.began > OverAfter(max(n.told, longest)); {
	case (found && other || alive) && (n.nagged == 0 || now-n.nagged >= nagging):
		n.nagged = now
		s.log.Error("another supervisor has the name of this node; give each its own (--node, or node: in the config)",
			"node", me.Node, "host", holder.Host, "pid", holder.Pid)
	case found && !other:
		s.log.Info("waiting for the previous session of this node to end, or for another supervisor that has its name",
			"node", me.Node, "path", path)
	}
	left = n.since + OverAfter(max(n.told, longest)) - now
	return left <= 0 || s.before.has(n.of.session), left
}

// overSessions are the sessions of this node whose leases are over, whatever
// their beats show: this process's, and that of the supervisor before it.
type overSessions struct {
	mu       sync.Mutex // guards the fields below
	ids      []int64
	dead     int64         // the newest of those whose programs are all proved dead
	replaced int64         // the newest that had stood still until its beat was deleted
	since    time.Duration // when its lease was over
}

func (o *overSessions) add(session int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ids = append(o.ids, session)
	o.ids = o.ids[max(0, len(o.ids)-2):]
}

func (o *overSessions) died(session int64) {
	o.add(session)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dead = session
}

// wasDead reports whether all programs of a session are proved dead.
func (o *overSessions) wasDead(session int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return session != 0 && o.dead == session
}

func (o *overSessions) replace(session int64, since time.Duration) {
	o.add(session)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.replaced, o.since = session, since
}

func (o *overSessions) has(session int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return session != 0 && slices.Contains(o.ids, session)
}

// wasReplaced tells since when the lease of a session has been over whose beat this node has deleted: no heartbeat came, or will come.
func (o *overSessions) wasReplaced(session int64) (since time.Duration, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.since, session != 0 && o.replaced == session
}

// leaseOf is the lease in nodes/<node>; 0: none.
func leaseOf(data []byte) time.Duration {
	n, err := decode[Node](data)
	if err != nil {
		return 0
	}
	return time.Duration(min(max(n.LeaseMs, 0), math.MaxInt32)) * time.Millisecond
}
