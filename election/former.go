package election

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"
)

// former is a session that a returning node finds under its own name.
type former struct {
	s    *Session
	path string // nodes/<node>

	sign
	owner int64
	asked time.Duration // when we sent the newest request whose refusal shows that a quorum hears us

	named   int64 // the session that the log has named
	namedAt time.Duration
}

// stale reports whether the session has sent no heartbeat for two session timeouts, its own or ours. We have no lease yet whose
// heartbeats could be acknowledged all the while; but a quorum also refuses a create, which we repeat.
func (f *former) stale(v view, refused error, sent time.Duration) bool {
	if !errors.Is(refused, zk.ErrNodeExists) {
		return false
	}
	session := f.s.Timeout()
	if f.owner != v.stat.EphemeralOwner || f.mzxid != v.stat.Mzxid || sent-f.asked > session {
		f.owner = v.stat.EphemeralOwner
		f.sign = sign{node: f.s.cfg.Node.Node, mzxid: v.stat.Mzxid, since: f.s.cfg.Now(), zxid: f.s.dialer.seen.Load()}
	}
	f.asked, f.version, f.timeout = sent, v.stat.Version, max(f.timeout, timeoutOf(v.data))
	return sent-f.since >= 2*max(f.timeout, session)
}

// succeed takes the place of a stale session, unless it sends a heartbeat first, and reports whether that is done. ClearStale deletes
// the session's other znodes.
func (f *former) succeed(ctx context.Context) bool {
	s := f.s
	s.log.Warn("the former session of this node has sent no heartbeat for two session timeouts, but ZooKeeper keeps it or its znode: taking its place",
		"node", f.node, "session", SessionName(f.owner))
	sent := s.cfg.Now()
	if err := s.replace(ctx, f.path, s.Self.data(), f.version); err != nil {
		s.log.Debug("cannot take the place of the former session", "error", err)
		return false
	}
	if f.owner != 0 { // else a restore has made it, and its other znodes cannot be told from others
		stale := f.sign
		stale.waited = true
		s.former = map[int64]*sign{f.owner: &stale}
	}
	s.extend(sent)
	return true
}

// nagging is how often the log repeats that another supervisor has our name.
const nagging = time.Minute

// tell logs which session has our name: a former one of this node, which ends soon, or that of another supervisor, which must be renamed.
func (f *former) tell(v view) {
	s, me, owner := f.s, f.s.cfg.Node, v.stat.EphemeralOwner
	alive := false // a session that nobody serves would be over by now
	if f.named == owner {
		if s.cfg.Now()-f.namedAt <= 2*max(s.Longest(), timeoutOf(v.data)) {
			return
		}
		alive = true
	}
	f.named, f.namedAt = owner, s.cfg.Now()
	if alive {
		f.namedAt += nagging
	}
	holder, err := decode[Node](v.data)
	switch {
	case owner == 0:
		s.log.Warn("the znode of this node belongs to no session: replacing it when it has been silent for two session timeouts", "node", me.Node)
	case err == nil && (alive || holder.Host != me.Host || holder.Machine != me.Machine):
		s.log.Error("another supervisor has the name of this node; give each its own (--node, or node: in the config)",
			"node", me.Node, "host", holder.Host, "pid", holder.Pid)
	default:
		s.log.Info("waiting for the former session of this node to end", "node", me.Node, "session", SessionName(owner))
	}
}
