package child

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"understudy/supervisor/child/runas"
	"understudy/supervisor/testbed/must"
)

// What the first process left behind is asked to end as well, one that is stopped too, and once only.
func TestWhatTheFirstProcessLeftBehindIsAsked(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		tree := planted(t, guarded(t, kind))
		r, w, err := os.Pipe()
		must.OK(t, err)
		defer r.Close()
		script := `asked() { echo asked; sleep 0.2; exit; }
			(trap asked TERM; echo up; while :; do sleep 0.01; done) & (trap asked TERM; echo up; while :; do sleep 0.01; done) &
			sleep 0.2; kill -STOP $!; echo stopped; exec sleep 1000`
		p, err := tree.Start(t.Context(), Spec{Argv: []string{"sh", "-c", script}, Env: runas.Environ(), Stdout: w, Stderr: w})
		_ = w.Close()
		must.OK(t, err)
		var out strings.Builder
		read := func(word string, times int) {
			t.Helper()
			_ = r.SetReadDeadline(time.Now().Add(patience))
			for buf := make([]byte, 100); strings.Count(out.String(), word+"\n") < times; {
				n, err := r.Read(buf)
				if err != nil {
					t.Fatalf("%v after %q", err, out.String())
				}
				out.Write(buf[:n])
			}
		}
		read("stopped", 1)
		if left := tree.parts[0].remaining(); len(left) < 3 {
			t.Fatalf("%v run", left)
		}
		must.OK(t, p.Signal(syscall.SIGTERM))
		<-p.Done()
		limit := time.After(patience)
		for again := time.Tick(5 * time.Millisecond); p.AskLeftovers(syscall.SIGTERM) > 0; {
			select {
			case <-again:
			case <-limit:
				t.Fatalf("%d are left", p.AskLeftovers(syscall.SIGTERM))
			}
		}
		read("asked", 2)
		must.OK(t, tree.End(t.Context()))
		if p.AskLeftovers(syscall.SIGTERM) != 0 {
			t.Error("somebody is left of an ended tree")
		}
	})
}
