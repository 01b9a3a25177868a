package election

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"
)

// beat writes to nodes/<node>, which nobody watches, and extends the lease with each acknowledgement. One heartbeat a
// supervisor, whatever the number of services.
func (s *Session) beat(ctx context.Context) {
	path := NodesDir(s.cfg.Root) + "/" + s.cfg.Node.Node
	pace := beatEvery(s.Timeout())
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for {
		if now := beatEvery(s.Timeout()); now != pace {
			pace = now
			tick.Reset(pace)
		}
		resumed := s.Resumed()
		select {
		case <-tick.C:
		case <-resumed:
		case <-s.ended:
			return
		case <-ctx.Done():
			return
		}
		stalled := time.AfterFunc(stallLimit(s.Timeout()), s.dialer.kick)
		sent := s.cfg.Now()
		stat, err := call(ctx, s, func() (*zk.Stat, error) { return s.conn.Set(path, s.nodeData(), -1) })
		stalled.Stop()
		switch {
		case err == nil:
			s.extend(sent)
			if stat.EphemeralOwner == 0 {
				s.reclaim(ctx, path, stat.Version)
			}
		case errors.Is(err, zk.ErrNoNode): // deleted by hand
			s.log.Warn("the znode of this supervisor was deleted, making it anew", "path", path)
			if err := s.create(ctx, path, s.nodeData(), zk.FlagEphemeral); err != nil {
				s.log.Warn("cannot make the znode of this supervisor", "path", path, "error", err)
			}
		case errors.Is(err, zk.ErrSessionExpired):
			s.Expire(ErrExpired)
		}
	}
}

// reclaim puts our own znode in the place of one that a restore has made no session's. P6: to others we would be silent with it.
func (s *Session) reclaim(ctx context.Context, path string, version int32) {
	s.log.Warn("the znode of this supervisor was no session's, making it anew", "path", path)
	_, err := s.multi(ctx, &zk.DeleteRequest{Path: path, Version: version},
		&zk.CreateRequest{Path: path, Data: s.nodeData(), Acl: s.acl, Flags: zk.FlagEphemeral})
	if err != nil {
		s.log.Warn("cannot make the znode of this supervisor", "path", path, "error", err)
	}
}

// extend prolongs the lease: a write sent at that time was acknowledged.
func (s *Session) extend(sent time.Duration) {
	s.steady.heard(sent, s.cfg.Now(), s.Timeout())
	if end, follow := s.prolong(sent); follow != nil {
		follow(end)
	}
}

func (s *Session) prolong(sent time.Duration) (time.Duration, func(time.Duration)) {
	now := s.cfg.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end > 0 && now >= max(s.end, s.held) {
		s.finish(ErrLeaseEnding) // P3: an ended lease is never revived
	}
	end := sent + LeaseLength(s.timeout)
	if s.over != nil || end <= s.end || end <= now {
		return 0, nil
	}
	s.end, s.acked = end, sent
	return end, s.follow
}

// watchLease ends the serving shortly before the lease ends, and the session when it does.
func (s *Session) watchLease(ctx context.Context) {
	warned := false
	for {
		end := s.LeaseEnd()
		left := end - s.cfg.Now()
		if left <= 0 {
			s.Expire(ErrLeaseEnding) // P3
			return
		}
		next := left
		if early := left - stopEarly(s.Timeout()); early > 0 {
			next = early
		} else if !warned {
			if !s.beginEnding() {
				continue // it goes on, by a word that came just now
			}
			warned = true
			s.log.Warn("ZooKeeper acknowledges nothing, the lease is ending", "left", left.Round(time.Millisecond), "error", s.dialer.trouble())
			s.kill(ErrLeaseEnding)
		}
		timer := time.NewTimer(next)
		select {
		case <-timer.C:
		case <-s.shorter:
			timer.Stop()
		case <-s.ended:
			timer.Stop()
			return
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// beginEnding notes that what is served is told to end: nobody's promise revives it from then on.
func (s *Session) beginEnding() bool {
	now := s.cfg.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ending = max(s.end, s.held)-now <= stopEarly(s.timeout)
	return s.ending
}
