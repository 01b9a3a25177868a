package unit

import (
	"errors"
	"slices"
	"testing"
	"time"

	"understudy/supervisor/config"
	"understudy/supervisor/testbed/must"
)

// A member says by its exit code that this host cannot run the service, and before that in words why. Where nothing was done nothing is
// undone, what came before it included.
func TestAMemberSaysWhyItFails(t *testing.T) {
	for code, want := range map[int]struct {
		unfit bool
		owed  []string
		stops []string
	}{
		1:                  {false, []string{"vip", "fs"}, []string{"start undo", "SIGTERM db", "start undo"}},
		config.ExitUnfit:   {true, []string{"vip", "fs"}, []string{"start undo", "SIGTERM db", "start undo"}},
		config.ExitNothing: {true, []string{"vip"}, []string{"SIGTERM db", "start undo"}},
	} {
		t.Setenv("XDG_RUNTIME_DIR", "")
		u, cfg, s := played(t)
		n := &notifying{s, make(chan string, 1)}
		cfg.Tree = n
		fs := config.Process{Name: "fs", Member: true, Oneshot: true, Undo: config.Command{"undo"}, UndoTimeout: 10 * time.Second}
		fs.Command, fs.Ready = config.Command{"fs"}, config.Ready{Notify: true, Timeout: time.Hour}
		cfg.Conf.Processes = []config.Process{cfg.Conf.Processes[0], cfg.Conf.Processes[1], fs}
		run := u.Start(t.Context(), cfg)
		say := speaker(t, <-n.socket)
		must.OK(t, say("X_UNDERSTUDY_WHY=no such disk"))
		heard := func() bool {
			run.mu.Lock()
			defer run.mu.Unlock()
			return len(run.parts) == 3 && run.parts[2].socket.Why() != ""
		}
		for again := time.Tick(time.Millisecond); !heard(); {
			<-again
		}
		s.actor("fs").end(code)
		why := run.Wait()
		_, unfit := errors.AsType[*Unfit](why)
		if ended, ok := errors.AsType[*Ended](why); unfit != want.unfit || !ok || ended.Error() != "fs: no such disk" || ended.Status.Code != code {
			t.Errorf("exit code %d: %v", code, why)
		}
		if owed := u.PendingEffects(); !slices.Equal(owed, want.owed) {
			t.Errorf("exit code %d: %v is owed", code, owed)
		}
		before := len(s.heard())
		run.Stop(t.Context(), cfg.Conf, Cut{})
		stops := slices.DeleteFunc(s.heard()[before:], func(said string) bool { return said != "start undo" && said != "SIGTERM db" })
		if !slices.Equal(stops, want.stops) || u.HasPendingEffects() {
			t.Errorf("exit code %d: %q, %v left", code, stops, u.PendingEffects())
		}
		run.Close()
		u.Close()
	}
}

// That an address has no link is told while the programs run.
func TestALostLinkIsHeard(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "")
	u, cfg, s := played(t)
	n := &notifying{s, make(chan string, 1)}
	lost := make(chan string, 2)
	cfg.Tree, cfg.Lost = n, func(why string) { lost <- why }
	keeper := config.Process{Name: "keeper", Member: true}
	keeper.Command, keeper.Ready = config.Command{"keeper"}, config.Ready{Notify: true, Timeout: time.Hour}
	cfg.Conf.Processes = []config.Process{keeper}
	run := u.Start(t.Context(), cfg)
	say := speaker(t, <-n.socket)
	for _, why := range []string{"eth0 is down", ""} {
		must.OK(t, say("X_UNDERSTUDY_LOST="+why))
		if got := <-lost; got != why {
			t.Error(got)
		}
	}
	run.Close()
	u.Close()
}
