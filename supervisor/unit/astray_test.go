package unit

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy/supervisor/child"
	"understudy/supervisor/config"
)

// A process in another cgroup is told of, and with contain=strict the run ends: such a program cannot be held.
func TestAProcessInAnotherCgroupIsToldOf(t *testing.T) {
	for _, contain := range []config.Contain{config.ContainAuto, config.ContainStrict} {
		t.Run(string(contain), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				strict := contain == config.ContainStrict
				u, cfg, s := played(t)
				cfg.Conf.Contain = contain
				var mu sync.Mutex
				var told []string
				cfg.Astray = func(said string) {
					mu.Lock()
					defer mu.Unlock()
					told = append(told, said)
				}
				run := u.Start(t.Context(), cfg)
				<-run.Ready()
				time.Sleep(5 * time.Minute)
				s.strays(child.Stray{Pid: 9, Comm: "java", Cgroup: "/user.slice"})
				time.Sleep(strayLast)
				synctest.Wait()
				if !strict {
					s.strays()
					time.Sleep(strayFirst) // so soon, because there was one
					synctest.Wait()
					mu.Lock()
					if len(told) != 2 || !strings.HasPrefix(told[0], "pid 9 (java) is in another cgroup, /user.slice: ") || told[1] != "" {
						t.Errorf("%q", told)
					}
					mu.Unlock()
					s.strays(slices.Repeat([]child.Stray{{Pid: 9}}, 5)...)
					run.End(errors.New("enough"))
				}
				err := run.Wait()
				if errors.Is(err, ErrAstray) != strict || strict && !strings.Contains(err.Error(), "pid 9 (java)") {
					t.Error(err)
				}
				run.Stop(t.Context(), cfg.Conf, Cut{})
				mu.Lock()
				if last := told[len(told)-1]; !strict && !strings.Contains(last, "; 2 more: ") {
					t.Errorf("%q", told)
				}
				mu.Unlock()
				run.Close()
				u.Close()
			})
		})
	}
}

// P2: a process in another cgroup lives until its tree is killed, and may use what is undone: that is undone after it. The first process of
// a program is killed by itself, wherever it is.
func TestNothingIsUndoneBesideAProcessInAnotherCgroup(t *testing.T) {
	const stops = "SIGTERM web, kill web, SIGTERM db, kill db"
	for pid, want := range map[int]string{9: stops, 7: stops + ", start undo, kill undo"} {
		synctest.Test(t, func(t *testing.T) {
			u, cfg, s := played(t)
			run := u.Start(t.Context(), cfg)
			<-run.Ready()
			s.strays(child.Stray{Pid: pid, Comm: "java", Cgroup: "/user.slice"})
			before := len(s.heard())
			run.Stop(t.Context(), cfg.Conf, Cut{})
			if got := strings.Join(s.heard()[before:], ", "); got != want {
				t.Errorf("pid %d: %s", pid, got)
			}
			if _, idle := run.Ended(); idle.IsZero() != (pid == 9) || u.HasPendingEffects() != (pid == 9) {
				t.Errorf("pid %d: no process lives since %v, and what is undone later: %v", pid, idle, u.HasPendingEffects())
			}
			run.Close()
			u.Close()
		})
	}
}
