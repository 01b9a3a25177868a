package replica

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/supervisor/child"
	"understudy/supervisor/config"
	"understudy/supervisor/host"
	"understudy/supervisor/unit"
	"understudy/supervisor/wait"
)

// stage is a guard, its trees, and a database in them, of which a test says what it is.
type stage struct {
	host.Guard
	host.Tree

	mu       sync.Mutex // guards what follows
	primary  bool
	hangs    bool // and so do its commands
	blind    bool // look fails
	looked   string
	noLook   bool // look cannot be started
	position string
	mends    map[string]int // exit codes of role, prepare, reclone and follow; -1: it hangs; -2: and succeeds when it is killed
	full     bool           // the disk
	gone     bool           // the tree has ended
	moves    []uint64       // to which leases it was moved
	refuses  bool           // to be moved
	stubborn bool           // demote does nothing
	lasting  bool           // its processes do not die
	slow     bool           // a program takes a second to start
	marker   bool           // role looks at a file, which a program removes at its start
	reload   func()         // is told of SIGHUP; nil: that ends a program
	cease    func()         // this supervisor ends
	part     func()         // another image of its process takes over
	tells    *stage         // in whose place its commands act; nil: itself
	said     []string       // what was run, but role and position
	kept     []byte
	program  *actor
	kills    int
}

func (s *stage) Begin(uint64, []byte) error         { return nil }
func (s *stage) Extend(uint64, time.Duration) error { return nil }
func (s *stage) Finish(uint64) error                { return nil }
func (s *stage) NewTree(context.Context, uint64, string, []byte) (host.Tree, error) {
	return s, nil
}
func (s *stage) Move(_ context.Context, epoch uint64, _ []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuses {
		return child.ErrLeaseEnded
	}
	s.moves = append(s.moves, epoch)
	return nil
}
func (s *stage) ID() (json.RawMessage, error) { return nil, nil }
func (s *stage) Kill(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kills++
	if s.lasting {
		return context.DeadlineExceeded
	}
	if s.program != nil {
		s.program.end(137)
		s.program = nil
	}
	s.primary = false
	return nil
}

func (s *stage) killed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kills
}

func (s *stage) End(ctx context.Context) error {
	s.mu.Lock()
	s.gone = false
	tells := s.tells
	s.mu.Unlock()
	if tells != nil { // all that its commands have left behind is dead
		tells.mu.Lock()
		defer tells.mu.Unlock()
		tells.said = append(tells.said, "end")
		if s.lasting {
			return context.DeadlineExceeded
		}
		return nil
	}
	return s.Kill(ctx)
}

func (s *stage) Start(ctx context.Context, spec child.Spec) (host.Process, error) {
	if s.slow && spec.Argv[0] == "program" {
		time.Sleep(time.Second)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return nil, child.ErrTreeEnded
	}
	if s.tells != nil {
		return s.tells.Start(ctx, spec)
	}
	a := &actor{done: make(chan struct{}), onKill: 137}
	code := 0
	switch spec.Argv[0] {
	case "program":
		s.said = append(s.said, "start")
		s.program, s.marker = a, false
		if a.reload = s.reload; s.mends["program"] != 0 {
			a.end(s.mends["program"])
		}
		return a, nil
	case "role":
		if s.hangs {
			return a, nil
		}
		if code = s.mends["role"]; s.primary || s.marker {
			code = exitPrimary
		}
	case "look":
		if s.noLook {
			return nil, child.ErrLeaseEnded
		}
		if s.looked = value(spec.Env, "UNDERSTUDY_ACTIVE_ADDRESS"); s.blind {
			code = 1
		}
	case "position":
		_, _ = io.WriteString(spec.Stdout, s.position)
	default:
		if p := s.program; strings.HasPrefix(spec.Argv[0], "re") || spec.Argv[0] == "prepare" {
			if p != nil && !wait.Closed(p.done) {
				s.said = append(s.said, "beside the program")
			}
		}
		s.said = append(s.said, spec.Argv[0]+" "+value(spec.Env, "UNDERSTUDY_ACTIVE_ADDRESS"))
		s.primary = spec.Argv[0] == "promote" || s.primary && spec.Argv[0] == "demote" && s.stubborn
		if code = s.mends[spec.Argv[0]]; code < 0 {
			if code == -2 {
				a.onKill = 0
			}
			return a, nil
		}
	}
	a.end(code)
	return a, nil
}

func value(env []string, name string) (v string) {
	for _, e := range env {
		if after, ok := strings.CutPrefix(e, name+"="); ok {
			v = after
		}
	}
	return v
}

func (s *stage) Load() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil {
		return nil, fs.ErrNotExist
	}
	return s.kept, nil
}

func (s *stage) Save(data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.full {
		return syscall.ENOSPC
	}
	s.kept = data
	return nil
}

func (s *stage) Strays() ([]child.Stray, error) { return nil, nil }

func (s *stage) heard() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.said, ", ")
}

func (s *stage) hang(yes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hangs = yes
}

func (s *stage) is(primary bool, position string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.primary, s.position = primary, position
}

// forget returns what was heard, and forgets it.
func (s *stage) forget() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	said := strings.Join(s.said, ", ")
	s.said = nil
	return said
}

// ends has a command end with this code from now on.
func (s *stage) ends(command string, code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mends == nil {
		s.mends = map[string]int{}
	}
	s.mends[command] = code
}

// actor is a process.
type actor struct {
	once sync.Once
	done chan struct{}
	code int

	onKill int
	reload func() // is told of SIGHUP, and it lives on; nil: it ends
}

func (a *actor) end(code int) {
	a.once.Do(func() {
		a.code = code
		close(a.done)
	})
}
func (a *actor) Pid() int                        { return 7 }
func (a *actor) Done() <-chan struct{}           { return a.done }
func (a *actor) AskLeftovers(syscall.Signal) int { return 0 }
func (a *actor) Kill(context.Context) error      { a.end(a.onKill); return nil }
func (a *actor) Signal(sig syscall.Signal) error {
	if sig == syscall.SIGHUP && a.reload != nil {
		a.reload()
		return nil
	}
	a.end(0)
	return nil
}
func (a *actor) Wait(ctx context.Context) (child.ExitStatus, error) {
	select {
	case <-a.done:
		return child.ExitStatus{Code: a.code}, nil
	case <-ctx.Done():
		return child.ExitStatus{}, context.Cause(ctx)
	}
}

// follows runs a copy while f looks at it, in virtual time.
func follows(t *testing.T, f func(t *testing.T, s *stage, c *Copy)) {
	followsWith(t, config.Replicated{}, nil, f)
}

// followsWith runs a copy with these commands beside the others, and what was kept of it.
func followsWith(t *testing.T, more config.Replicated, kept []byte, f func(t *testing.T, s *stage, c *Copy)) {
	conf := config.DefaultService("program")
	conf.Replicated = &config.Replicated{
		Role: []string{"role"}, Position: []string{"position"}, Promote: []string{"promote"}, Follow: []string{"follow"}, Demote: []string{"demote"},
		PositionsFrom: 1, Interval: time.Second, Timeout: 5 * time.Second, Prepare: more.Prepare, Reclone: more.Reclone, Attempts: 2,
	}
	keeps(t, conf, kept, f)
}

func keeps(t *testing.T, conf config.Service, kept []byte, f func(t *testing.T, s *stage, c *Copy)) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{position: "5", kept: kept}
		commands := unit.NewCommands(func() host.Guard { return s }, func() time.Duration { return time.Hour })
		u := unit.New(unit.Config{Service: "db", Node: "n", Cluster: t.Name(), Logger: hclog.NewNullLogger(), Commands: commands})
		c := New(Config{
			Service: "db", Node: "n", Unit: u, Commands: commands, Logger: hclog.NewNullLogger(), News: func() {}, Store: func(string) Store { return s },
		}, conf)
		ctx, end := context.WithCancelCause(t.Context())
		cancel := func() { end(nil) }
		s.cease = cancel
		done := make(chan struct{})
		s.part = func() { end(ErrParting); <-done }
		go func() {
			defer close(done)
			c.Keep(ctx)
		}()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		f(t, s, c)
		cancel()
		<-done
		u.Close()
	})
}

// held has a term take the copy.
func held(t *testing.T, c *Copy) (host.Tree, *unit.CarriedRun) {
	t.Helper()
	tree, err := c.Tree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	run, err := c.Hold(t.Context(), tree)
	if err != nil {
		t.Fatal(err)
	}
	return tree, run
}
