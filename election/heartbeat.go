package election

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
)

const (
	slowShare        = 12 // an answer that takes a larger part of the lease than that is worth a line
	tripsOfATakeover = 15 // round trips in a row from a lock that comes free to a program that runs
)

// beat writes to nodes/<node>, which nobody watches, and extends the lease with each acknowledgement. One heartbeat a
// supervisor, whatever the number of services.
func (s *Session) beat(ctx context.Context) {
	path := NodesDir(s.cfg.Root) + "/" + s.cfg.Node.Node
	tick := time.NewTicker(beatEvery(s.LeaseLength()))
	defer tick.Stop()
	slow := false             // that was told
	at := make(chan struct{}) // closed: a heartbeat is sent at once. SetBacks waits for the first one of each connection
	close(at)
	now := at
	for {
		resumed := s.Resumed()
		select {
		case <-now:
		case <-tick.C:
		case <-resumed:
		case <-s.Ended():
			return
		case <-ctx.Done():
			return
		}
		resumed = s.Resumed()
		stalled := time.AfterFunc(stallLimit(s.LeaseLength()), s.dialer.kick)
		sent := s.cfg.Now()
		stat, err := call(ctx, s.client, func() (*zk.Stat, error) { return s.conn.Set(path, s.Self.data(), -1) })
		stalled.Stop()
		switch {
		case err == nil && stat.Czxid != s.Lease.rests(), errors.Is(err, zk.ErrNoNode):
			s.log.Warn("somebody else deleted the znode of this supervisor, which carries its heartbeats: the session ends", "path", path)
			s.Stop(ErrBeatGone) // P3: no write to another znode extends the lease
			return
		case err == nil:
			s.extend(sent)
			s.past.found(*stat, 1)
			if s.Resumed() == resumed { // else it may be of the previous connection
				s.past.looked(resumed)
			}
			if took := s.cfg.Now() - sent; took > s.LeaseLength()/slowShare && !slow {
				slow = true
				s.log.Warn("ZooKeeper answers slowly, so takeovers take longer", "round_trip", took.Round(time.Millisecond), "takeover", fmt.Sprint("up to ", (tripsOfATakeover*took).Round(100*time.Millisecond)))
			}
		}
		if now = nil; err == nil && s.Resumed() != resumed { // not after a failure: the connection may break again and again
			now = at
		}
	}
}
