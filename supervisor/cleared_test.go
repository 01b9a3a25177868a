package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/election/zkmem"
	"understudy/fencing"
	"understudy/supervisor/child"
)

// shown is a machine whose trees are all gone, and which shows single processes.
type shown struct {
	Machine
	alive error
	asked fencing.Process
}

func (*shown) KillTree(context.Context, json.RawMessage) error { return nil }

func (s *shown) Outlasted(_ json.RawMessage, p fencing.Process) error {
	s.asked = p
	return s.alive
}

// P2: the breadcrumb of a former session that tells of a process stays for as long as that lives, though its tree is gone.
func TestABreadcrumbStaysWithTheProcessThatItTellsOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := zkmem.New(zkmem.Config{TickTime: 500 * time.Millisecond})
		defer server.Close()
		began := time.Now()
		self := election.Node{Node: "a", Host: "a", Machine: "m", Boot: "b"}
		within := func(f func(context.Context, *election.Session, *election.Candidate) error) {
			t.Helper()
			e := election.New(election.Config{
				Servers: []string{"zk:2181"}, Root: "/understudy", Timeout: 4 * time.Second, Node: self, Logger: hclog.NewNullLogger(),
				Now: func() time.Duration { return time.Since(began) + time.Hour },
				Dial: func(ctx context.Context, _ string) (net.Conn, error) {
					ours, theirs := net.Pipe()
					go server.ServeConn(theirs)
					return ours, ctx.Err()
				},
			})
			err := e.Open(t.Context(), func(ctx context.Context, s *election.Session) error {
				c, _, err := s.Stand(ctx, "db", election.Race)
				if err != nil {
					return err
				}
				return f(ctx, s, c)
			})
			e.Wait()
			if err != nil {
				t.Fatal(err)
			}
		}
		tree := json.RawMessage(`{"kind":"cgroup"}`)
		within(func(ctx context.Context, _ *election.Session, c *election.Candidate) error {
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
			_, err = c.Remains(ctx, tree, election.Leftover{Pid: 7, Start: 70})
			return err
		})
		within(func(ctx context.Context, s *election.Session, c *election.Candidate) error {
			m := &shown{}
			v := &service{unit: idle(), name: "db", log: hclog.NewNullLogger(), node: self, machine: m}
			there := func() bool {
				t.Helper()
				_, there, err := c.Named(ctx)
				if err != nil {
					t.Error(err)
				}
				return there
			}
			for _, alive := range []error{child.ErrUnproved, child.ErrMayLive} {
				m.alive = alive
				if v.cleared(ctx, turn{sess: s, cand: c}) || !there() || m.asked != (fencing.Process{Pid: 7, Start: 70}) {
					t.Errorf("it is gone, or nobody looks again: %v, %+v", alive, m.asked)
				}
				// Nor does it go with the rest of what is waited for at the beginning of a session.
				if buried, err := c.Bury(ctx, tree, v.outlasted(tree)); buried || !errors.Is(err, alive) {
					t.Errorf("removed: %v", err)
				}
			}
			m.alive = nil
			if !v.cleared(ctx, turn{sess: s, cand: c}) || there() {
				t.Error("it stays for ever")
			}
			return nil
		})
	})
}
