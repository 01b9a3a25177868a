package unit

import (
	"errors"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"understudy/supervisor/config"
	"understudy/supervisor/testbed/hung"
	"understudy/supervisor/testbed/must"
	"understudy/supervisor/wait"
)

// patience is that with a file system, and what a busy machine takes.
const patience = 25 * time.Second

// ends fails the test if f takes longer than a file system is waited for.
func ends(t *testing.T, what string, within time.Duration, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(within):
		t.Errorf("%s: it hangs", what)
	}
}

// P6: a disk that hangs is not waited for without limit by anybody, and what cannot be read is not known. Who knows that nothing is on it
// does not touch it.
func TestNobodyWaitsForAStateDiskThatHangs(t *testing.T) {
	next, _ := disk(t)
	dir, err := os.MkdirTemp("", "hung-")
	must.OK(t, errors.Join(err, os.MkdirAll(undosDir, 0o755)))
	defer os.RemoveAll(dir) // once it answers, what nobody waited for may still write there
	lastingDir = dir
	before, surviving := next("b1"), next("b1")
	surviving.undos.service = "other"
	answer := hung.Mount(t, lastingDir)
	defer answer() // before what debtor removes
	ends(t, "to note and to settle what does not survive a boot", time.Second, func() {
		must.Report(t, before.undos.add(vipOf(7)))
		before.undos.dropNewest()
	})
	var all sync.WaitGroup // not tests of their own: few of those run at a time
	for name, f := range map[string]func(){
		"what a previous supervisor left": func() {
			u := next("b1")
			if err := u.Undo(t.Context()); !errors.Is(err, wait.ErrNoAnswer) || u.NotUndone() == "" {
				t.Errorf("%v, %q", err, u.NotUndone())
			}
		},
		"what is owed here": func() {
			if owed := PendingEffectsOn(term, "b1"); !slices.Contains(owed, "unknown") {
				t.Errorf("owed: %q", owed)
			}
		},
		"who owes": func() { ServicesWithUndos("a", t.Name()) },
		"what survives a boot": func() {
			if err := surviving.Last(7); !errors.Is(err, wait.ErrNoAnswer) {
				t.Error(err)
			}
			ends(t, "to note it, too", time.Second, func() {
				if err := surviving.undos.add(role); !errors.Is(err, wait.ErrNoAnswer) {
					t.Error(err)
				}
			})
		},
		"a guardian's note": func() {
			n := Note{Node: "a", Service: "db", Cluster: "x"}
			if err := n.Undo(t.Context(), n.Store(), Means{}); !errors.Is(err, wait.ErrNoAnswer) {
				t.Error(err)
			}
		},
		"whether it can be noted": func() {
			c := config.DefaultService("true")
			c.Processes = []config.Process{{Program: config.Program{Command: config.Command{"true"}}, Oneshot: true, Undo: config.Command{"true"}, SurvivesBoot: true}}
			if err := surviving.CannotNote(c); !errors.Is(err, wait.ErrNoAnswer) {
				t.Error(err)
			}
			c.Processes[0].SurvivesBoot = false
			must.Report(t, before.CannotNote(c))
		},
	} {
		all.Go(func() { ends(t, name, patience, f) })
	}
	all.Wait()
}

// late is a disk that answers when nobody waits any more.
type late struct {
	Notes
	text string
}

func (l *late) Save(data []byte, _ bool) error {
	l.text = string(data)
	return wait.ErrNoAnswer
}

// What was not done because it could not be noted is not noted either, once the disk answers.
func TestALateDiskListsNothingThatWasNotDone(t *testing.T) {
	u, disk := debtor(t, "a", "db", nil), &late{}
	u.undos.store = disk
	err := u.undos.add(vip)
	if owed := (TermRef{Node: "a", Service: "db"}).PendingEffects("", []byte(disk.text)); !errors.Is(err, wait.ErrNoAnswer) || len(owed) > 0 || u.HasPendingEffects() {
		t.Errorf("%v, noted: %q", err, owed)
	}
	u.undos.store = undosFile(u.cfg)
}
