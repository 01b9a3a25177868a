package unit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"understudy/supervisor/child"
	"understudy/supervisor/config"
	"understudy/supervisor/host"
	"understudy/supervisor/wait"
)

// stage is a tree with played processes, and the log of what happened there.
type stage struct {
	host.Tree
	cancelStart map[string]bool          // these end for no signal
	immortal    bool                     // nothing is proved dead
	runs        map[string]time.Duration // these end by themselves after so long
	codes       map[string]int           // with these exit codes

	mu   sync.Mutex // guards what follows
	said []string
	on   map[string]*actor
	out  []child.Stray
}

func (s *stage) strays(all ...child.Stray) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out = all
}

func (s *stage) Strays() ([]child.Stray, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.out), nil
}

func (s *stage) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, fmt.Sprintf(format, args...))
}

func (s *stage) heard() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.said)
}

func (s *stage) Start(_ context.Context, spec child.Spec) (host.Process, error) {
	name := spec.Argv[0]
	s.say("start %s", name)
	a := &actor{s: s, name: name, done: make(chan struct{})}
	s.mu.Lock()
	s.on[name] = a
	s.mu.Unlock()
	if d, ok := s.runs[name]; ok {
		time.AfterFunc(d, func() { a.end(s.codes[name]) })
	}
	return a, nil
}

func (s *stage) actor(name string) *actor {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.on[name]
}

// actor is a process of a stage.
type actor struct {
	s    *stage
	name string
	code int
	once sync.Once
	done chan struct{}
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

func (a *actor) Wait(ctx context.Context) (child.ExitStatus, error) {
	select {
	case <-a.done:
		return child.ExitStatus{Code: a.code}, nil
	case <-ctx.Done():
		return child.ExitStatus{}, context.Cause(ctx)
	}
}

func (a *actor) Signal(sig syscall.Signal) error {
	if sig == unix.SIGCONT {
		return nil
	}
	if a.s.say("%s %s", unix.SignalName(sig), a.name); !a.s.cancelStart[a.name] && sig != unix.SIGHUP {
		a.end(0)
	}
	return nil
}

func (a *actor) Kill(context.Context) error {
	a.s.say("kill %s", a.name)
	if a.s.immortal {
		return errors.New("it is alive")
	}
	a.end(137)
	return nil
}

// played is a unit whose programs are vip, a oneshot, then db, which is ready after a second, then web; and its stage.
func played(t *testing.T) (*Unit, RunConfig, *stage) {
	t.Helper()
	was := undosDir
	t.Cleanup(func() { undosDir = was })
	undosDir = filepath.Join(t.TempDir(), "understudy")
	s := &stage{cancelStart: map[string]bool{}, runs: map[string]time.Duration{"vip": 0, "undo": 0, "hook": 0}, on: map[string]*actor{}}
	program := func(name string) config.Process {
		return config.Process{Name: name, Program: config.Program{
			Command: []string{name}, StopSignal: config.Signal(unix.SIGTERM), StopTimeout: 10 * time.Second,
		}}
	}
	vip, db, web := program("vip"), program("db"), program("web")
	vip.Oneshot, vip.Undo, vip.UndoTimeout = true, []string{"undo"}, 10*time.Second
	db.Ready = config.Ready{After: time.Second}
	u := New(Config{Service: "shop", Node: "a", Cluster: "c", Logger: hclog.NewNullLogger()})
	return u, RunConfig{
		Tree: s, Token: 7, MayStart: func() error { return nil }, Health: func(string) {}, Astray: func(string) {},
		Conf: config.Service{
			Processes: []config.Process{vip, db, web}, Hooks: config.Hooks{OnActive: config.Hook{Command: []string{"hook"}, Timeout: time.Second}},
		},
	}, s
}

func TestProgramsStartInTheirOrderAndStopInReverse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, cfg, s := played(t)
		run := u.Start(t.Context(), cfg)
		time.Sleep(time.Second - time.Millisecond)
		if got := s.heard(); !slices.Equal(got, []string{"owe 7", "start vip", "start db"}) || wait.Closed(run.Ready()) {
			t.Errorf("before db is ready: %q", got)
		}
		if !u.HasPendingEffects() {
			t.Error("what undoes vip is not due")
		}
		time.Sleep(2 * time.Millisecond)
		if synctest.Wait(); !wait.Closed(run.Ready()) || wait.Closed(run.Done()) {
			t.Error("not ready")
		}
		run.Reload(unix.SIGHUP)
		run.End(errors.New("enough"))
		s.runs["undo"] = time.Second
		if err := run.Wait(); err.Error() != "enough" || run.First() != s.actor("vip") {
			t.Error(err, run.First())
		}
		now := cfg.Conf
		now.Processes = slices.Clone(now.Processes)
		now.Processes[1].StopSignal = config.Signal(unix.SIGINT) // how it is stopped may change
		if run.Outdated(now) {
			t.Error("another signal takes a new start")
		}
		stopped := time.Now()
		run.Stop(t.Context(), now, Cut{})
		if left, idle := run.Ended(); !left.Equal(stopped) || !idle.Equal(stopped) || time.Since(stopped) < time.Second {
			t.Errorf("no program runs since %v, %v, and the undo began then", left.Sub(stopped), idle.Sub(stopped))
		}
		run.Close()
		u.Close()
		want := "owe 7, start vip, start db, start web, start hook, kill hook, SIGHUP db, SIGHUP web, " +
			"SIGTERM web, kill web, SIGINT db, kill db, start undo, kill undo"
		if got := strings.Join(s.heard(), ", "); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if u.HasPendingEffects() {
			t.Error("still due: ", u.PendingUndos())
		}
	})
}

// A client of a service with an IPv4 and an IPv6 address waits for both.
func TestAddressesAreSetAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, cfg, s := played(t)
		address := func(name string) config.Process {
			p := cfg.Conf.Processes[0]
			p.Name, p.Command, p.Undo, p.Sets = name, config.Command{name}, config.Command{"undo " + name}, &config.Address{}
			return p
		}
		keeper := func(name string) config.Process {
			p := cfg.Conf.Processes[1]
			p.Name, p.Command, p.Ready.After, p.Keeps = name, config.Command{name}, 5*time.Second, true
			return p
		}
		cfg.Conf.Processes = append([]config.Process{address("v4"), address("v6"), keeper("v4-keeper")}, cfg.Conf.Processes[2:]...)
		s.runs["v4"], s.runs["v6"] = 2*time.Second, 3*time.Second
		run := u.Start(t.Context(), cfg)
		for _, want := range []string{"owe 7, start v4, start v6", "owe 7, start v4, start v6, start v4-keeper"} {
			time.Sleep(2500 * time.Millisecond)
			if got := strings.Join(s.heard(), ", "); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		if owed := u.PendingEffects(); !slices.Equal(owed, []string{"v4", "v6"}) {
			t.Errorf("owed: %q", owed)
		}
		run.End(nil)
		run.Close()
		u.Close()
	})
}

func TestTheRunTellsWhyItEnded(t *testing.T) {
	forbidden := errors.New("forbidden")
	for name, c := range map[string]struct {
		change func(*RunConfig, *stage)
		then   func(*stage)
		is     func(error) bool
		heard  int
	}{
		"a program ends": {then: func(s *stage) { s.actor("db").end(3) }, heard: 6, is: func(err error) bool {
			ended, ok := errors.AsType[*Ended](err)
			return ok && ended.Name == "db" && ended.Status.Code == 3
		}},
		"P1: it must not start": {change: func(c *RunConfig, _ *stage) { c.MayStart = func() error { return forbidden } }, heard: 1, is: func(err error) bool {
			_, ok := errors.AsType[*StartError](err)
			return ok && errors.Is(err, forbidden)
		}},
		"a oneshot takes too long": {change: func(c *RunConfig, s *stage) {
			c.Conf.Processes[0].Ready.Timeout = time.Second
			delete(s.runs, "vip")
		}, heard: 2, is: func(err error) bool { return strings.Contains(err.Error(), "has not ended within") }},
		"on_active hangs": {change: func(_ *RunConfig, s *stage) { delete(s.runs, "hook") }, heard: 6, is: func(err error) bool {
			return errors.Is(err, ErrHook)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u, cfg, s := played(t)
				if c.change != nil {
					c.change(&cfg, s)
				}
				run := u.Start(t.Context(), cfg)
				if time.Sleep(5 * time.Second); c.then != nil {
					c.then(s)
				}
				synctest.Wait()
				over := wait.Closed(run.Done())
				run.End(errors.New("it went on")) // else a wait for it would be one for ever
				if err := run.Wait(); !over || !c.is(err) {
					t.Errorf("ended: %v, %v", over, err)
				}
				if got := s.heard(); len(got) != c.heard {
					t.Errorf("%q", got)
				}
				run.Close()
			})
		})
	}
}

// P1, P3: no program is asked any more once the lock is lost or the lease has ended.
func TestWhoIsCutIsAskedNoMore(t *testing.T) {
	for _, which := range []string{"lock lost", "lease ended", "in time"} {
		synctest.Test(t, func(t *testing.T) {
			u, cfg, s := played(t)
			s.cancelStart["web"] = true
			run := u.Start(t.Context(), cfg)
			<-run.Ready()
			run.End(nil)
			_ = run.Wait()
			cut, over, began := Cut{}, make(chan struct{}), time.Now()
			switch which {
			case "lock lost":
				cut.LockLost = over
			case "lease ended":
				cut.LeaseEnded = over
			}
			time.AfterFunc(time.Second, func() { close(over) })
			run.Stop(t.Context(), cfg.Conf, cut)
			took, inTime := time.Since(began), which == "in time"
			if inTime != (took == 10*time.Second) || !inTime && took != time.Second {
				t.Errorf("%s: it took %v", which, took)
			}
			if asked := slices.Contains(s.heard(), "SIGTERM db"); asked != inTime || u.HasPendingEffects() == inTime {
				t.Errorf("%s: %q, still due: %v", which, s.heard(), u.PendingUndos())
			}
			run.Close()
		})
	}
}

// An address that stays would be on two hosts: an undo that the tree's end interrupts is still due, in the next process too.
func TestAnInterruptedUndoIsStillDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, cfg, s := played(t)
		delete(s.runs, "undo")
		run := u.Start(t.Context(), cfg)
		<-run.Ready()
		run.End(nil)
		_ = run.Wait()
		lost := make(chan struct{})
		time.AfterFunc(time.Second, func() {
			close(lost)
			s.actor("undo").end(137)
		})
		run.Stop(t.Context(), cfg.Conf, Cut{LockLost: lost})
		run.Close()
		next := New(u.cfg)
		next.LoadUndos()
		if due := next.PendingUndos(); !u.HasPendingEffects() || len(due) != 1 || due[0].Name != "vip" || due[0].Token != 7 {
			t.Errorf("due: %v, read again: %v", u.PendingUndos(), due)
		}
		if _, err := os.Stat(u.undos.store.Path()); err != nil {
			t.Error(err)
		}
	})
}

// P2: a start whose end is not known may have its effect later: nothing is undone beside it, or beside what it has left.
func TestAStartThatIsHalfDoneIsDeadBeforeItIsUndone(t *testing.T) {
	for name, one := range map[string]struct {
		ends, immortal bool
		want           string
	}{
		"hangs":             {false, false, "owe 7, start vip, kill vip, start undo, kill undo"},
		"fails":             {true, false, "owe 7, start vip, kill vip, start undo, kill undo"},
		"cannot be killed":  {false, true, "owe 7, start vip, kill vip"},
		"leaves what lives": {true, true, "owe 7, start vip, kill vip"},
	} {
		synctest.Test(t, func(t *testing.T) {
			u, cfg, s := played(t)
			delete(s.runs, "vip")
			s.immortal = one.immortal
			cfg.Conf.Processes[0].Ready.Timeout = time.Minute
			run := u.Start(t.Context(), cfg)
			if synctest.Wait(); one.ends {
				s.actor("vip").end(1)
			}
			_ = run.Wait()
			run.Stop(t.Context(), cfg.Conf, Cut{})
			run.Close()
			s.actor("vip").end(137)
			if got := strings.Join(s.heard(), ", "); got != one.want || u.HasPendingEffects() != one.immortal {
				t.Errorf("%s: %s, owes %v, want %s", name, got, u.HasPendingEffects(), one.want)
			}
		})
	}
}
