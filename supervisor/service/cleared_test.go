package service

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"understudy/election"
	"understudy/fencing"
	"understudy/supervisor/child/box"
)

// shown is a machine whose trees are all gone, and which shows single processes.
type shown struct {
	empty
	alive error
	tree  string
	asked fencing.ProcessID
}

func (s *shown) Outlasted(tree json.RawMessage, p fencing.ProcessID) error {
	s.tree, s.asked = string(tree), p
	return s.alive
}

// P2: a breadcrumb of a previous session that names a process stays as long as that process lives, even if its tree is gone.
func TestABreadcrumbStaysWithTheProcessThatItTellsOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := newEnsemble(t)
		defer zk.server.Close()
		tree := json.RawMessage(`{"kind":"cgroup"}`)
		stand := func(ctx context.Context, s *election.Session) *election.Candidate {
			c, _, err := s.NewCandidate(ctx, "db", election.Race)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		zk.session(func(ctx context.Context, s *election.Session) error {
			c := stand(ctx, s)
			o, err := c.Wait(ctx)
			if err != nil {
				return err
			}
			claim, err := c.Take(ctx, o, election.BreadCrumb{Tree: tree})
			if err != nil {
				return err
			}
			if err := claim.Inscribe(ctx); err != nil {
				return err
			}
			_, err = c.Crumb.NoteLeftover(ctx, tree, election.Leftover{Pid: 7, Start: 70})
			return err
		})
		zk.session(func(ctx context.Context, s *election.Session) error {
			m, c := &shown{}, stand(ctx, s)
			v := made(t, Conf{}, func(n *LocalNode) { n.Machine = m })
			there := func() bool {
				t.Helper()
				_, there, err := c.Crumb.Named(ctx)
				if err != nil {
					t.Error(err)
				}
				return there
			}
			for _, alive := range []error{box.ErrUnproved, box.ErrMayLive} {
				m.alive = alive
				if v.breadcrumb.cleared(ctx, s, c) || !there() || m.asked != (fencing.ProcessID{Pid: 7, Start: 70}) {
					t.Errorf("it is gone, or nobody looks again: %v, %+v", alive, m.asked)
				}
				// Nor is it removed at the beginning of a session.
				if removed, err := c.Crumb.MarkDead(ctx, tree, v.breadcrumb.outlasted(tree)); removed || !errors.Is(err, alive) {
					t.Errorf("removed: %v", err)
				}
			}
			m.alive = nil
			if !v.breadcrumb.cleared(ctx, s, c) || there() {
				t.Error("it stays for ever")
			}
			return nil
		})
	})
}

// killing is a machine that notes which trees it was asked to kill.
type killing struct {
	empty
	killed []string
}

func (k *killing) KillTree(_ context.Context, tree json.RawMessage) error {
	k.killed = append(k.killed, string(tree))
	return nil
}

// P7: a program that has outlasted its session runs in the tree that a breadcrumb of the previous session names.
func TestWhatOutlastsItsSessionIsLeftAloneUntilItsLockIsDecided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := newEnsemble(t)
		defer zk.server.Close()
		tree := json.RawMessage(`{"kind":"cgroup"}`)
		zk.session(func(ctx context.Context, s *election.Session) error {
			c, _, err := s.NewCandidate(ctx, "db", election.Race)
			if err != nil {
				return err
			}
			o, err := c.Wait(ctx)
			if err != nil {
				return err
			}
			claim, err := c.Take(ctx, o, election.BreadCrumb{Tree: tree, Effects: election.Effects{Names: []string{"vip"}}})
			if err != nil {
				return err
			}
			return claim.Inscribe(ctx)
		})
		zk.session(func(ctx context.Context, s *election.Session) error {
			m := &killing{}
			v := made(t, Conf{}, func(n *LocalNode) { n.Machine = m })
			v.carried = &CarriedTerm{until: time.Hour}
			stay := v.testStay(ctx, Session{Session: s}, nil)
			var err error
			stay.candidacy.cand, stay.candidacy.birth, err = s.NewCandidate(ctx, "db", election.Race)
			if err != nil {
				return err
			}
			stay.Joined(ctx)
			defer stay.candidacy.parted()
			time.Sleep(time.Minute)
			if synctest.Wait(); len(m.killed) > 0 {
				t.Error("it is killed")
			}
			close(stay.candidacy.decided)
			time.Sleep(time.Minute)
			if synctest.Wait(); len(m.killed) == 0 {
				t.Error("P6: what a previous session left is not looked at")
			}
			return nil
		})
	})
}
