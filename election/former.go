package election

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"
)

// former is the session that a node that comes back finds under its own name.
type former struct {
	sign
	owner int64
	asked time.Duration // when the newest request was sent whose refusal shows that a quorum hears us
}

// stale tells whether the session has sent no heartbeat for two session timeouts, its own or ours. There is no lease yet whose
// heartbeats could be acknowledged all the while; but a create is refused by a quorum too, and it is asked for again and again.
func (f *former) stale(s *Session, v view, refused error, sent time.Duration) bool {
	if !errors.Is(refused, zk.ErrNodeExists) {
		return false
	}
	session := s.Timeout()
	if f.owner != v.stat.EphemeralOwner || f.mzxid != v.stat.Mzxid || sent-f.asked > session {
		f.owner = v.stat.EphemeralOwner
		f.sign = sign{node: s.cfg.Node.Node, mzxid: v.stat.Mzxid, since: s.cfg.Now(), zxid: s.dialer.seen.Load()}
	}
	f.asked, f.version, f.timeout = sent, v.stat.Version, max(f.timeout, timeoutOf(v.data))
	return sent-f.since >= 2*max(f.timeout, session)
}

// succeed takes the place of a stale session, unless it sends a heartbeat first, and tells whether that is done. What else the
// session holds is deleted by ClearStale.
func (s *Session) succeed(ctx context.Context, path string, f former) bool {
	s.log.Warn("the former session of this node has sent no heartbeat for two session timeouts, but ZooKeeper keeps it or its znode: taking its place",
		"node", f.node, "session", SessionName(f.owner))
	sent := s.cfg.Now()
	_, err := s.multi(ctx, &zk.DeleteRequest{Path: path, Version: f.version},
		&zk.CreateRequest{Path: path, Data: s.nodeData(), Acl: s.acl, Flags: zk.FlagEphemeral})
	if err != nil {
		s.log.Debug("its place is not taken", "error", err)
		return false
	}
	if f.owner != 0 { // else a restore has made it, and what else is no session's was not its own
		f.waited = true
		s.former = map[int64]*sign{f.owner: &f.sign}
	}
	s.extend(sent)
	return true
}
