package unit

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"understudy/supervisor/config"
	"understudy/supervisor/host"
)

// promotedOf is a run that has promoted the copy of a follower's run, db, and then done what is behind that.
func promotedOf(t *testing.T) (u *Unit, cfg RunConfig, s *stage, run *Run) {
	t.Helper()
	u, cfg, s = played(t)
	all := cfg.Conf.Processes
	cfg.Conf.Replicated, cfg.Conf.Processes = &config.Replicated{}, []config.Process{all[1], all[0], all[2]}
	follower := cfg
	follower.Conf = cfg.Conf.Copy()
	run = u.Start(t.Context(), follower)
	<-run.Ready()
	run.End(nil)
	_ = run.Wait()
	carried, ok := run.HandOver()
	if run.Close(); !ok || u.HasPendingEffects() {
		t.Fatal("the follower is not handed over, or has done what only the primary does")
	}
	cfg.Adopt = carried
	cfg.Promote = func(context.Context, host.Process) error {
		s.say("promote, owes: %v", u.HasPendingEffects())
		return nil
	}
	run = u.Start(t.Context(), cfg)
	<-run.Ready()
	return u, cfg, s, run
}

// No client reaches a follower through an address: it is set once the copy is promoted, and removed before the program is asked to stop.
func TestAPromotedCopyHasEffects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, cfg, s, run := promotedOf(t)
		if !u.HasPendingEffects() || run.Outdated(cfg.Conf) {
			t.Errorf("owes: %v, outdated: %v", u.HasPendingEffects(), run.Outdated(cfg.Conf))
		}
		run.End(nil)
		_ = run.Wait()
		run.Stop(t.Context(), cfg.Conf, Cut{})
		run.Close()
		const want = "start db, promote, owes: false, owe 7, start vip, start web, start hook, kill hook, SIGTERM web, kill web, start undo, kill undo, SIGTERM db"
		if got := strings.Join(s.heard(), ", "); got != want || u.HasPendingEffects() {
			t.Errorf("got  %s\nwant %s, owes: %v", got, want, u.HasPendingEffects())
		}
		u.Close()
	})
}

// P2: a copy is demoted once its effects are undone; then its program alone runs on.
func TestWhatIsWithdrawnIsUndone(t *testing.T) {
	for what, c := range map[string]struct {
		cut  bool
		undo int
	}{"all is well": {}, "an undo fails": {undo: 1}, "the lock is lost": {cut: true}} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u, cfg, s, run := promotedOf(t)
				s.codes = map[string]int{"undo": c.undo}
				run.End(errors.New("switchover"))
				_ = run.Wait()
				cut := Cut{}
				if c.cut {
					lost := make(chan struct{})
					close(lost)
					cut.LockLost = lost
				}
				well := c.undo == 0 && !c.cut
				if done := run.Withdraw(t.Context(), cfg.Conf, cut); done != well || u.HasPendingEffects() == well {
					t.Fatalf("withdrawn: %v, owes: %v", done, u.HasPendingEffects())
				}
				if well {
					carried, ok := run.HandOver()
					if !ok || len(carried.Programs) != 1 || len(carried.parts) != 1 || carried.parts[0].Name != "db" || strings.Contains(strings.Join(s.heard(), ", "), "SIGTERM db") {
						t.Errorf("handed over: %v, %+v; %q", ok, carried, s.heard())
					}
				}
				run.Close()
				u.Close()
			})
		})
	}
}

// A warm program that does not run is started, and promoted once it is ready. Then all that is behind it begins. It can be demoted as if it had
// run before.
func TestAWarmProgramThatDoesNotRunIsStartedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, cfg, s := played(t)
		all := cfg.Conf.Processes
		cfg.Conf.Replicated, cfg.Conf.Processes = &config.Replicated{}, []config.Process{all[1], all[0], all[2]}
		cfg.Promote = func(_ context.Context, first host.Process) error {
			s.say("promote, of a process: %v", first != nil)
			return nil
		}
		run := u.Start(t.Context(), cfg)
		<-run.Ready()
		run.End(nil)
		_ = run.Wait()
		const want = "start db, promote, of a process: true, owe 7, start vip, start web, start hook, kill hook"
		if got := strings.Join(s.heard(), ", "); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if done := run.Withdraw(t.Context(), cfg.Conf, Cut{}); !done || u.HasPendingEffects() {
			t.Errorf("withdrawn: %v, owes: %v", done, u.HasPendingEffects())
		}
		if carried, ok := run.HandOver(); !ok || len(carried.parts) != 1 || carried.parts[0].Name != "db" {
			t.Errorf("handed over: %v, %+v", ok, carried)
		}
		run.Close()
		u.Close()
	})
}

// P1: a run that ends before the program has said that it is promoted is never handed over: it may be promoted later.
func TestAProgramThatIsAboutToBePromotedIsNotHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, cfg, _ := played(t)
		cfg.Conf.Replicated, cfg.Conf.Processes = &config.Replicated{}, cfg.Conf.Processes[1:2]
		asked := make(chan struct{})
		cfg.Promote = func(ctx context.Context, _ host.Process) error {
			close(asked)
			<-ctx.Done()
			return context.Cause(ctx)
		}
		run := u.Start(t.Context(), cfg)
		<-asked
		run.End(errors.New("switchover"))
		_ = run.Wait()
		_ = run.Withdraw(t.Context(), cfg.Conf, Cut{})
		if carried, ok := run.HandOver(); ok {
			t.Errorf("handed over: %+v", carried)
		}
		run.Close()
		u.Close()
	})
}

// The next image of this process looks what a promoted copy is, does not promote it again, and can have it demoted.
func TestAPromotedCopyIsOneInTheNextImage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, cfg, s, run := promotedOf(t)
		run.End(nil)
		_ = run.Wait()
		carried, ok := run.HandOver()
		if run.Close(); !ok {
			t.Fatal("it is not handed over")
		}
		attended := false
		cfg.Adopt, cfg.Promote = carried, nil
		cfg.Attend = func(ctx context.Context) error {
			attended = true
			<-ctx.Done()
			return nil
		}
		run = u.Start(t.Context(), cfg)
		<-run.Ready()
		synctest.Wait()
		if got := strings.Count(strings.Join(s.heard(), ", "), "promote"); got != 1 || !attended {
			t.Errorf("promoted %d times, attended: %v", got, attended)
		}
		run.End(nil)
		_ = run.Wait()
		if done := run.Withdraw(t.Context(), cfg.Conf, Cut{}); !done || u.HasPendingEffects() || len(run.parts) != 1 || run.parts[0].Name != "db" {
			t.Errorf("withdrawn: %v, owes: %v, left %v", done, u.HasPendingEffects(), run.parts)
		}
		run.Close()
		u.Close()
	})
}
