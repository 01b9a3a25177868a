package election

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election/jute"
	"understudy/supervisor/testbed/must"
	"understudy/supervisor/testbed/zkfaults"
)

const (
	testTick    = 500 * time.Millisecond
	testLease   = 2 * time.Second
	testTimeout = 2 * testLease // of its session
)

// world is a ZooKeeper and a clock of its own: all of it runs in virtual time.
type world struct {
	*testing.T
	zk    *zkfaults.Server
	start time.Time
}

func inWorld(t *testing.T, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, zk: zkfaults.New(zkfaults.Config{TickTime: testTick}), start: time.Now()}
		defer func() { must.Report(t, w.zk.Close()) }()
		f(w)
	})
}

func (w *world) now() time.Duration { return time.Since(w.start) + time.Hour }

func (w *world) dial(ctx context.Context, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	go w.zk.ServeConn(theirs)
	return ours, ctx.Err()
}

func (w *world) config(node string) Config {
	return Config{
		Servers: []string{"zk1:2181", "zk2:2181"}, Root: "/understudy", Lease: testLease,
		Node: Node{Node: node, Host: node, Machine: "m-" + node, Boot: "b"}, Now: w.now, Dial: w.dial, Logger: hclog.NewNullLogger(),
	}
}

// open runs f in a session of a node's own, and returns a function that waits for its end.
func (w *world) open(node string, f func(ctx context.Context, s *Session) error) (wait func() error) {
	result := make(chan error, 1)
	go func() {
		e := New(w.config(node))
		err := e.Open(w.Context(), caught(f))
		e.Wait()
		result <- err
	}()
	return func() error { return <-result }
}

// failed is how try ends a function.
type failed struct{ error }

// try ends a function that runs in a session with an error.
func try(err error) {
	if err != nil {
		panic(failed{err})
	}
}

// caught returns the error that f, or a try in it, ends with.
func caught(f func(ctx context.Context, s *Session) error) func(ctx context.Context, s *Session) error {
	return func(ctx context.Context, s *Session) (err error) {
		defer func() {
			switch r := recover().(type) {
			case nil:
			case failed:
				err = r.error
			default:
				panic(r)
			}
		}()
		return f(ctx, s)
	}
}

// within runs f in a session and fails the test when it fails.
func (w *world) within(node string, f func(ctx context.Context, s *Session) error) {
	w.Helper()
	if err := w.open(node, f)(); err != nil {
		w.Fatalf("%s: %v", node, err)
	}
}

// claims is within, once the lock is had.
func (w *world) claims(node string, f func(ctx context.Context, s *Session, c *Claim) error) {
	w.Helper()
	w.within(node, func(ctx context.Context, s *Session) error {
		_, c := claimed(ctx, s, Race)
		return f(ctx, s, c)
	})
}

// activates is claims, once the breadcrumb is written.
func (w *world) activates(node string, f func(ctx context.Context, s *Session, c *Claim) error) {
	w.Helper()
	w.within(node, func(ctx context.Context, s *Session) error {
		c := activated(ctx, s)
		return f(ctx, s, c)
	})
}

// leaveCrumb leaves a breadcrumb of a node x, which is gone.
func (w *world) leaveCrumb() {
	w.asOperator(func(ctx context.Context, s *Session) error {
		if _, _, err := s.NewCandidate(ctx, "svc", Race); err != nil {
			return err
		}
		return s.create(ctx, Paths{"/understudy", "svc"}.Crumb(), encode(BreadCrumb{Node: "x", Session: "0x1"}), 0)
	})
}

// claim stands for "svc" until the lock is had.
func claim(ctx context.Context, s *Session, mode Mode) (*Candidate, *Claim, error) {
	c, _, err := s.NewCandidate(ctx, "svc", mode)
	if err != nil {
		return nil, nil, err
	}
	for {
		o, err := c.Wait(ctx)
		if err != nil {
			return c, nil, err
		}
		cl, err := c.Take(ctx, o, BreadCrumb{Tree: []byte(`{"of":"` + s.cfg.Node.Node + `"}`)})
		if cl != nil || err != nil {
			return c, cl, err
		}
	}
}

// stand is a candidate for "svc".
func stand(ctx context.Context, s *Session, mode Mode) *Candidate {
	c, _, err := s.NewCandidate(ctx, "svc", mode)
	try(err)
	return c
}

// claimed is claim, or ends the function.
func claimed(ctx context.Context, s *Session, mode Mode) (*Candidate, *Claim) {
	c, cl, err := claim(ctx, s, mode)
	try(err)
	return c, cl
}

// activated is activate, or ends the function.
func activated(ctx context.Context, s *Session) *Claim {
	cl, err := activate(ctx, s)
	try(err)
	return cl
}

// unanswered takes the lock, and does not learn that it did.
func (w *world) unanswered(ctx context.Context, s *Session, mode Mode) (*Candidate, error) {
	c, _, err := s.NewCandidate(ctx, "svc", mode)
	if err != nil {
		return nil, err
	}
	o, err := c.Wait(ctx)
	if err != nil {
		return nil, err
	}
	w.zk.CloseAfter(zkfaults.Match{Op: jute.OpMulti})
	if cl, err := c.Take(ctx, o, BreadCrumb{Tree: []byte(`{}`)}); cl != nil || err != nil || !c.MayHoldLock() {
		return nil, fmt.Errorf("it is known what became of the claim: %+v, %w", cl, err)
	}
	return c, nil
}

// activate claims and inscribes, fencing nobody: the tests know that nobody else runs.
func activate(ctx context.Context, s *Session) (*Claim, error) {
	_, cl, err := claim(ctx, s, Race)
	if err != nil {
		return nil, err
	}
	for {
		err := cl.Inscribe(ctx)
		if !errors.Is(err, ErrCrumbChanged) {
			return cl, err
		}
	}
}

// asOperator runs f in a session that is nobody's.
func (w *world) asOperator(f func(ctx context.Context, s *Session) error) {
	w.Helper()
	w.within("operator", f)
}

func exists(ctx context.Context, s *Session, path string) (bool, error) {
	v, err := s.existsW(ctx, path)
	return v.exists, err
}
