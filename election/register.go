package election

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"
)

// register makes the folders and the node's own ephemeral. Its acknowledgement is the first lease.
func (s *Session) register(ctx context.Context) error {
	root := s.cfg.Root
	if err := s.ensure(ctx, append(parents(root), NodesDir(root), ServicesDir(root))); err != nil {
		return err
	}
	if err := s.tellLongest(ctx); err != nil {
		return fmt.Errorf("write %s: %w", NodesDir(root), err)
	}
	path := NodesDir(root) + "/" + s.cfg.Node.Node
	var other namesake
	for again := (pacing{}); ; {
		s.Self.Say(func(n *Node) { n.Replaced = nil })
		err := s.create(ctx, path, s.Self.data(), zk.FlagEphemeral)
		if err == nil {
			if err = s.firstBeat(ctx, path); err == nil {
				return nil
			}
		}
		if !errors.Is(err, zk.ErrNodeExists) && !errors.Is(err, zk.ErrNoNode) && !unknown(err) {
			return fmt.Errorf("create %s: %w", path, err)
		}
		in := s.Resumed()
		v, err := s.getW(ctx, path)
		if err == nil && v.exists && v.stat.EphemeralOwner == s.ID() { // our own create, whose answer was lost
			if err = s.firstBeat(ctx, path); err == nil {
				return nil
			}
		}
		if err != nil && !unknown(err) && !errors.Is(err, zk.ErrNoNode) {
			return fmt.Errorf("take the name of the node, %s: %w", path, err)
		}
		if err != nil || !v.exists {
			if err := again.wait(ctx, s.client, err); err != nil {
				return err
			}
			continue
		}
		s.rollbacks.found(v.stat, 0) // of our previous session, or of another supervisor that has our name
		over, left := other.meet(s, path, v, in)
		if over {
			s.Self.Say(func(n *Node) { n.Replaced = &LastBeat{SessionName(v.stat.EphemeralOwner), v.stat.Version} })
			err := s.replace(ctx, path, s.Self.data(), v.stat.Version)
			if err == nil && left <= 0 && s.Resumed() == in { // P1: else it was of another copy of the data, maybe
				s.before.replace(v.stat.EphemeralOwner, s.cfg.Now()+left)
			}
			if err == nil && s.firstBeat(ctx, path) == nil {
				return nil
			}
			continue // it has changed, or our answer was lost
		}
		patient, enough := context.WithTimeout(ctx, min(left, beatEvery(s.LeaseLength())))
		err = s.await(patient, v.changed)
		enough()
		if err != nil && patient.Err() == nil || ctx.Err() != nil {
			return err
		}
	}
}

// firstBeat writes to the znode that this session has made, and begins the lease, which rests on that very znode.
func (s *Session) firstBeat(ctx context.Context, path string) error {
	sent := s.cfg.Now()
	stat, err := call(ctx, s.client, func() (*zk.Stat, error) { return s.conn.Set(path, s.Self.data(), -1) })
	switch {
	case err != nil:
		return err
	case stat.EphemeralOwner != s.ID():
		return errUnanswered
	}
	s.begin(stat.Czxid, sent)
	return nil
}
