package child

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child/wire"
	"understudy/supervisor/testbed/must"
)

// P7: a guardian that was stopped for longer than a lease has missed nothing: what it is told counts from when it was sent.
func TestThawedGuardianReadsBeforeItKills(t *testing.T) {
	t.Parallel()
	g := guarded(t, "walk")
	const lease = 800 * time.Millisecond // twice that is less than what a guardian may leave unanswered
	must.OK(t, errors.Join(g.Begin(1, nil), g.Extend(1, wire.Now()+lease)))
	tree, err := g.NewTree(t.Context(), 1, "svc", nil)
	must.OK(t, err)
	pid := g.Pid()
	freeze(t, pid)
	began := wire.Now()
	thawed := false
	for wire.Now() < began+4*lease {
		if err := g.Extend(1, wire.Now()+lease); err != nil {
			t.Fatalf("after %v: %v", wire.Now()-began, err)
		}
		if !thawed && wire.Now() > began+2*lease {
			thawed = true
			must.OK(t, unix.Kill(pid, unix.SIGCONT))
		}
		select {
		case <-g.Over(1):
			t.Fatalf("the lease was ended after %v: %v", wire.Now()-began, g.Cause(1))
		case <-time.After(lease / 8):
		}
	}
	if g.Pid() != pid {
		t.Error("the guardian was replaced")
	}
	must.Report(t, tree.End(t.Context()))
}
