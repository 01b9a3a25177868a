package election

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
)

// register makes the folders and the node's own ephemeral. Its acknowledgement is the first lease.
func (s *Session) register(ctx context.Context) error {
	root := s.cfg.Root
	if err := s.ensure(ctx, append(parents(root), NodesDir(root), ServicesDir(root))); err != nil {
		return err
	}
	path := NodesDir(root) + "/" + s.cfg.Node.Node
	told, since := int64(-1), time.Duration(0)
	var rival former
	for again := (pacing{}); ; {
		sent := s.cfg.Now()
		err := s.create(ctx, path, s.nodeData(), zk.FlagEphemeral)
		if err == nil {
			s.extend(sent)
			return nil
		}
		if !errors.Is(err, zk.ErrNodeExists) && !unknown(err) {
			return fmt.Errorf("create %s: %w", path, err)
		}
		refused := err
		v, err := s.look(ctx, path)
		owner := v.stat.EphemeralOwner
		if err == nil && owner == s.ID() { // our own create, whose answer was lost
			sent := s.cfg.Now()
			if err = s.set(ctx, path, s.nodeData(), -1); err == nil {
				s.extend(sent)
				return nil
			}
		}
		if err != nil && !unknown(err) && !errors.Is(err, zk.ErrNoNode) {
			return fmt.Errorf("take the name of the node, %s: %w", path, err)
		}
		if err != nil || !v.exists {
			if err := again.wait(ctx, s, err); err != nil {
				return err
			}
			continue
		}
		if rival.stale(s, v, refused, sent) {
			if s.succeed(ctx, path, rival) {
				return nil
			}
			if err := again.wait(ctx, s, nil); err != nil {
				return err
			}
			continue
		}
		switch waited := s.cfg.Now() - since; {
		case told != owner:
			told, since = owner, s.cfg.Now()
			s.tellHolder(v.data, owner, false)
		case waited > 2*max(s.Longest(), timeoutOf(v.data)): // a session that nobody serves would be over by now
			since = s.cfg.Now() + nagging
			s.tellHolder(v.data, owner, true)
		}
		patient, enough := context.WithTimeout(ctx, s.Timeout()/2) // then it asks again, and is answered or not
		err = s.await(patient, v.changed)
		enough()
		if err != nil && patient.Err() == nil || ctx.Err() != nil {
			return err
		}
	}
}

// nagging is how often it is said again that another supervisor has our name.
const nagging = time.Minute

// tellHolder logs who has our name: a former session of this node soon ends, another supervisor has to be renamed.
func (s *Session) tellHolder(data []byte, owner int64, alive bool) {
	if owner == 0 {
		s.log.Warn("the znode of this node is no session's: taking its place when it has been silent for two session timeouts", "node", s.cfg.Node.Node)
		return
	}
	holder, err := decode[Node](data)
	me := s.cfg.Node
	if err == nil && (alive || holder.Host != me.Host || holder.Machine != me.Machine) {
		s.log.Error("another supervisor has the name of this node; give each its own (--node, or node: in the config)",
			"node", me.Node, "host", holder.Host, "pid", holder.Pid)
		return
	}
	s.log.Info("waiting for the former session of this node to end", "node", me.Node, "session", SessionName(owner))
}
