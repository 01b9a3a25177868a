package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"understudy/election"
	"understudy/supervisor/child/box"
	"understudy/supervisor/host"
	"understudy/supervisor/service"
	"understudy/supervisor/testbed/zkfaults"
)

// undying is a tree that does not die.
type undying struct{ host.Tree }

func (undying) ID() (json.RawMessage, error) { return json.RawMessage(`{}`), nil }

func (undying) End(ctx context.Context) error {
	<-ctx.Done()
	return box.ErrUnproved
}

// sessionsAt are a supervisor's at a server.
func sessionsAt(server *zkfaults.Server, s *supervisor) *election.Sessions {
	began := time.Now()
	return election.New(election.Config{
		Servers: []string{"zk:2181"}, Root: "/understudy", Lease: 2 * time.Second, Node: s.self, Logger: s.log,
		Now: func() time.Duration { return time.Since(began) + time.Hour },
		Dial: func(ctx context.Context, _ string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go server.ServeConn(theirs)
			return ours, ctx.Err()
		},
	})
}

// knowing is a guard whose guardians know of a tree that has not ended.
type knowing struct{ treeless }

func (knowing) Kind() string                { return box.KindCgroup }
func (knowing) Over(uint64) <-chan struct{} { return nil }
func (knowing) Finish(uint64) error         { return errors.New("a tree has not ended") }

// P2: whatever the services say, a session is not closed as long as a tree is known that has not ended: its lock would go.
func TestASessionIsNotClosedBesideATreeThatHasNotEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := zkfaults.New(zkfaults.Config{TickTime: 500 * time.Millisecond})
		defer server.Close()
		s := small(Config{Machine: early{}})
		s.guard = knowing{}
		close(s.guarded)
		e := sessionsAt(server, s)
		err := e.Open(t.Context(), func(ctx context.Context, sess *election.Session) error {
			stopping, stop := context.WithCancel(ctx)
			time.AfterFunc(time.Second, stop)
			return s.serve(stopping, sess, 1)
		})
		if !errors.Is(err, service.ErrUnproved) {
			t.Errorf("it is closed: %v", err)
		}
		e.Wait()
	})
}

// An upgrade finds a death that may never be proved.
func TestATreeThatIsNotProvedDeadIsInAnUpgradesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := zkfaults.New(zkfaults.Config{TickTime: 500 * time.Millisecond})
		defer server.Close()
		s := small(Config{Machine: early{}})
		s.guard = moving{}
		v := handedOn(t, s, undying{}, nil)
		e := sessionsAt(server, s)
		err := e.Open(t.Context(), func(ctx context.Context, sess *election.Session) error {
			// Its claim cannot be read: it has to end.
			leave, served := make(chan struct{}), make(chan error, 1)
			gate := s.newGate(sess, 1)
			go func() { served <- v.Serve(ctx, service.Session{Session: sess, Epoch: 1, Gate: gate, Leave: leave}) }()
			for v.Upgrade() != service.Stuck {
				time.Sleep(time.Second)
			}
			close(leave)
			return <-served
		})
		if !errors.Is(err, service.ErrUnproved) {
			t.Errorf("it is dead: %v", err)
		}
		e.Wait()
	})
}
