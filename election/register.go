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
	rival := nameHolder{s: s, path: path, named: -1}
	for again := (pacing{}); ; {
		sent := s.cfg.Now()
		err := s.create(ctx, path, s.Self.data(), zk.FlagEphemeral)
		if err == nil {
			s.extend(sent)
			return nil
		}
		if !errors.Is(err, zk.ErrNodeExists) && !unknown(err) {
			return fmt.Errorf("create %s: %w", path, err)
		}
		v, err := s.getW(ctx, path)
		owner := v.stat.EphemeralOwner
		if err == nil && owner == s.ID() { // our own create, whose answer was lost
			sent := s.cfg.Now()
			if err = s.set(ctx, path, s.Self.data(), -1); err == nil {
				s.extend(sent)
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
		s.past.found(v.stat, 0) // of our previous session, or of another supervisor that has our name
		if rival.report(v) {
			sent := s.cfg.Now()
			if err := s.replace(ctx, path, s.Self.data(), v.stat.Version); err == nil {
				s.extend(sent)
				return nil
			}
			continue // it has changed, or our answer was lost
		}
		patient, enough := context.WithTimeout(ctx, s.Timeout()/2) // then register asks again
		err = s.await(patient, v.changed)
		enough()
		if err != nil && patient.Err() == nil || ctx.Err() != nil {
			return err
		}
	}
}
