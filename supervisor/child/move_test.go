package child

import (
	"errors"
	"testing"
	"time"

	"understudy/supervisor/child/wire"
	"understudy/supervisor/testbed/must"
)

// P3: a program that was started under a lease without an end dies with the lease that its tree has moved to, and only then.
func TestATreeThatHasMovedDiesWithItsNewLease(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		g := guarded(t, kind)
		tree := planted(t, g)
		_, r := started(t, tree, "echo up; sleep 1000 & wait")
		await(t, r, "up")
		must.OK(t, errors.Join(g.Begin(2, nil), g.Extend(2, wire.Now()+700*time.Millisecond)))
		must.OK(t, tree.Move(t.Context(), 2, []byte("lock")))
		if err := g.Finish(1); err != nil {
			t.Fatal("its previous lease still has it:", err)
		}
		began := wire.Now()
		_ = r.SetReadDeadline(time.Now().Add(patience))
		if _, err := r.Read(make([]byte, 16)); err == nil {
			t.Fatal("it says something")
		} else if lived := wire.Now() - began; lived > 5*time.Second {
			t.Fatalf("it lived for %v: %v", lived, err)
		}
		if _, err := tree.Start(t.Context(), Spec{Argv: []string{"true"}}); err == nil {
			t.Fatal("something can be started in it")
		}
		if err := tree.Move(t.Context(), 2, nil); !errors.Is(err, ErrLeaseEnded) {
			t.Fatal(err)
		}
		must.OK(t, tree.End(t.Context()))
		must.OK(t, g.Finish(2))
	})
}
