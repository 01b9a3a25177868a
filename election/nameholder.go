package election

import (
	"math"
	"time"
)

// nameHolder is what a returning node finds under its own name.
type nameHolder struct {
	s    *Session
	path string // nodes/<node>

	named   int64         // the session that the log has named
	namedAt time.Duration // when the log is not to repeat it for some time
	beat    int64         // the mzxid of its znode then
}

// nagging is how often the log repeats that our name is taken.
const nagging = time.Minute

// report logs which session has our name: a previous one of this node, which ends soon, or that of another supervisor, which must be renamed.
// It reports whether the znode has belonged to no session for two session timeouts: a restore has made it, and it never ends.
func (h *nameHolder) report(v view) (nobodys bool) {
	s, me, owner := h.s, h.s.cfg.Node, v.stat.EphemeralOwner
	alive := false // a session that nobody serves would be over by now
	if h.named == owner {
		if s.cfg.Now()-h.namedAt <= 2*max(s.Lease.Longest(), timeoutOf(v.data)) {
			return false
		}
		alive = true
	}
	beats := h.beat != v.stat.Mzxid
	h.named, h.namedAt, h.beat = owner, s.cfg.Now(), v.stat.Mzxid
	if alive && owner != 0 {
		h.namedAt += nagging
	}
	holder, err := decode[Node](v.data)
	switch {
	case owner == 0 && alive:
		s.log.Warn("the znode of this node belongs to no session: replacing it", "path", h.path)
	case owner == 0:
		s.log.Warn("the znode of this node belongs to no session: replacing it after two session timeouts", "path", h.path)
	case alive && !beats:
		s.log.Error("the previous session of this node sends no heartbeats, and ZooKeeper does not end it: delete its znode, and what `understudy status` names",
			"path", h.path, "session", SessionName(owner))
	case err == nil && (alive || holder.Host != me.Host || holder.Machine != me.Machine):
		s.log.Error("another supervisor has the name of this node; give each its own (--node, or node: in the config)",
			"node", me.Node, "host", holder.Host, "pid", holder.Pid)
	default:
		s.log.Info("waiting for the previous session of this node to end, or for another supervisor that has its name", "node", me.Node, "session", SessionName(owner))
	}
	return owner == 0 && alive
}

// timeoutOf is the session timeout in nodes/<node>; 0: none.
func timeoutOf(data []byte) time.Duration {
	n, err := decode[Node](data)
	if err != nil {
		return 0
	}
	return time.Duration(min(max(n.SessionMs, 0), math.MaxInt32)) * time.Millisecond
}
