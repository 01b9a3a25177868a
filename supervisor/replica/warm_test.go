package replica

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/config"
)

// warms runs a warm program that is ready 2 s after its start, and may run. f looks at it 3 s later.
func warms(t *testing.T, warm config.Warm, f func(t *testing.T, s *stage, c *Copy)) {
	conf := config.DefaultService("program")
	warm.Timeout = 5 * time.Second
	conf.Warm, conf.Processes[0].Ready = &warm, config.Ready{After: 2 * time.Second}
	conf.Replicated = &config.Replicated{Role: warm.Role, Timeout: warm.Timeout, Interval: time.Second}
	keeps(t, conf, nil, func(t *testing.T, s *stage, c *Copy) {
		if s.heard() != "" || c.Shown().Why != "it is not known yet whether it may run here" {
			t.Errorf("it runs where nobody has allowed it: %s, %+v", s.heard(), c.Shown())
		}
		c.Halt("")
		time.Sleep(3 * time.Second)
		synctest.Wait()
		f(t, s, c)
	})
}

var byCommand = config.Warm{Promote: config.Order{Exec: config.Command{"promote"}}, Demote: config.Order{Exec: config.Command{"demote"}}}

// A warm program can be promoted at once while it is ready, and nothing of it is kept on a disk.
func TestAWarmProgramStandsByWhileItIsReady(t *testing.T) {
	for _, asked := range []config.Command{nil, {"role"}} {
		warm := byCommand
		warm.Role = asked
		warms(t, warm, func(t *testing.T, s *stage, c *Copy) {
			var told atomic.Int32
			c.cfg.News = func() { told.Add(1) }
			if ready, starting := c.Ready(); !ready || starting || c.Shown().Role != Follower || c.Shown().Why != "" {
				t.Errorf("%v, %v, %+v", ready, starting, c.Shown())
			}
			s.mu.Lock()
			s.program.end(3)
			s.mu.Unlock()
			synctest.Wait()
			if ready, starting := c.Ready(); ready || starting || told.Load() == 0 {
				t.Errorf("after its end: %v, %v, told %d times", ready, starting, told.Load())
			}
			time.Sleep(1500 * time.Millisecond)
			told.Store(0)
			if ready, starting := c.Ready(); ready || !starting {
				t.Errorf("while it starts: %v, %v", ready, starting)
			}
			time.Sleep(3 * time.Second)
			if ready, _ := c.Ready(); !ready || told.Load() == 0 || s.heard() != "start, start" || s.kept != nil {
				t.Errorf("ready: %v, told %d times, %s, kept %s", ready, told.Load(), s.heard(), s.kept)
			}
		})
	}
}

// A role that is not known is no follower's. One that is the primary's, without the lock, is killed: P1.
func TestAWarmProgramThatDoesNotSayThatItStandsByIsNotReady(t *testing.T) {
	warm := byCommand
	warm.Role = config.Command{"role"}
	warms(t, warm, func(t *testing.T, s *stage, c *Copy) {
		s.ends("role", 3)
		time.Sleep(2 * time.Second)
		if ready, starting := c.Ready(); ready || starting || s.killed() != 0 {
			t.Errorf("%v, %v, %d kills", ready, starting, s.killed())
		}
		s.ends("role", 0)
		s.is(true, "")
		time.Sleep(2 * time.Second)
		if s.killed() == 0 {
			t.Error("a program that says that it is promoted lives on")
		}
	})
}

// A term does not get a program that is still starting. It has the tree all the same, and nothing is started there until it is free again.
func TestATermHasTheTreeOfAWarmProgramThatStarts(t *testing.T) {
	warms(t, byCommand, func(t *testing.T, s *stage, c *Copy) {
		s.mu.Lock()
		s.program.end(3)
		s.mu.Unlock()
		time.Sleep(1500 * time.Millisecond)
		if _, starting := c.Ready(); !starting || c.Holds(s) {
			t.Fatal("it does not start")
		}
		run, err := c.Hold(t.Context(), s)
		if run != nil || err == nil || !c.Holds(s) {
			t.Fatalf("%v, %v, held: %v", run, err, c.Holds(s))
		}
		if ready, starting := c.Ready(); ready || starting {
			t.Error("a program that a term has stands by")
		}
		s.forget()
		settles(t, s, time.Minute, "")
		if err := s.Kill(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.Free()
		settles(t, s, 3*time.Second, "start")
	})
}

// A tree that a term does not have is not for it.
func TestATreeOfAPreviousCopyIsNotHeld(t *testing.T) {
	warms(t, byCommand, func(t *testing.T, s *stage, c *Copy) {
		if _, err := c.Hold(t.Context(), &stage{}); !errors.Is(err, errStale) || c.Holds(s) {
			t.Errorf("%v, held: %v", err, c.Holds(s))
		}
	})
}

// What operators forbid does not run, also if it was demoted for that.
func TestAWarmProgramIsStoppedWhereItMustNotRun(t *testing.T) {
	warms(t, byCommand, func(t *testing.T, s *stage, c *Copy) {
		run, orders := promoted(t, s, c)
		c.Halt("stopped by ops")
		settles(t, s, time.Minute, "")
		if err := c.Promotion(12).Demote(t.Context(), nil, orders); err != nil {
			t.Fatal(err)
		}
		if err := c.Return(t.Context(), s, run); err != nil {
			t.Fatal(err)
		}
		settles(t, s, time.Minute, "demote , end")
		if c.Shown().Why != "stopped by ops" || s.program != nil {
			t.Errorf("%+v, runs: %v", c.Shown(), s.program != nil)
		}
		c.Halt("")
		settles(t, s, 3*time.Second, "start")
	})
}

// P1: where nobody can ask what the program is, nothing that has promoted it may be left when it ceases: it might promote it once more.
func TestNothingPromotesAWarmProgramThatCeases(t *testing.T) {
	for _, lasting := range []bool{false, true} {
		warms(t, byCommand, func(t *testing.T, s *stage, c *Copy) {
			_, orders := promoted(t, s, c)
			orders.lasting = lasting
			err := c.Promotion(12).Demote(t.Context(), nil, orders)
			if want := map[bool]string{false: "demote , end"}[lasting]; (err == nil) == lasting || orders.kills != 1 || s.heard() != want {
				t.Errorf("what promoted it lives on: %v: %v, %d kills, %s", lasting, err, orders.kills, s.heard())
			}
		})
	}
	asked := byCommand
	asked.Role = config.Command{"role"}
	warms(t, asked, func(t *testing.T, s *stage, c *Copy) {
		_, orders := promoted(t, s, c)
		if err := c.Promotion(12).Demote(t.Context(), nil, orders); err != nil || orders.kills != 0 {
			t.Errorf("%v, %d kills", err, orders.kills)
		}
	})
}

func TestAWarmProgramIsPromotedByASignal(t *testing.T) {
	warms(t, config.Warm{Promote: config.Order{Signal: config.Signal(unix.SIGHUP)}}, func(t *testing.T, s *stage, c *Copy) {
		got := 0
		s.program.reload = func() { got++ }
		if _, err := c.Hold(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if err := c.Promotion(12).Promote(nil, nil)(t.Context(), s.program); err != nil || got != 1 {
			t.Errorf("%v, it got %d signals", err, got)
		}
		ctx, enough := context.WithTimeout(t.Context(), time.Minute)
		defer enough()
		if err := c.Promotion(12).Attend(ctx); err != nil {
			t.Errorf("nobody can ask what it is: %v", err)
		}
	})
	asked := byCommand
	asked.Role = config.Command{"role"}
	warms(t, asked, func(t *testing.T, s *stage, c *Copy) { // it is asked what it is, and nothing else
		promoted(t, s, c)
		time.AfterFunc(20*time.Second, func() { s.is(false, "") })
		if began := time.Now(); !errors.Is(c.Promotion(12).Attend(t.Context()), ErrDemoted) || time.Since(began) < 20*time.Second {
			t.Errorf("it was demoted, and that was seen after %v", time.Since(began))
		}
	})
}

func TestAWarmProgramIsPromotedOverHTTP(t *testing.T) {
	var seen *http.Request
	code := http.StatusNoContent
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r
		w.WriteHeader(code)
	}))
	defer server.Close()
	a := asking{token: 12}
	for _, c := range []struct {
		order, method string
		code          int
		ok            bool
	}{
		{server.URL + "/activate", "POST", http.StatusNoContent, true}, {"PUT " + server.URL + "/activate", "PUT", http.StatusOK, true},
		{server.URL + "/activate", "POST", http.StatusFound, false}, {server.URL + "/activate", "POST", http.StatusServiceUnavailable, false},
	} {
		code = c.code
		err := a.give(t.Context(), nil, config.Order{HTTP: c.order})
		if (err == nil) != c.ok || seen.Method != c.method || seen.Header.Get("Understudy-Token") != "12" || seen.URL.Path != "/activate" {
			t.Errorf("%s, %d: %v, %s %v", c.order, c.code, err, seen.Method, seen.Header)
		}
	}
}
