package supervisor

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
)

// treeless is a guard that makes no trees. What it is asked for one is told.
type treeless struct {
	Guard
	asked func(ctx context.Context)
}

func (treeless) Begin(uint64, []byte) error         { return nil }
func (treeless) Extend(uint64, time.Duration) error { return nil }
func (treeless) Finish(uint64) error                { return nil }

func (g treeless) NewTree(ctx context.Context, _ uint64, _ string, _ []byte) (Tree, error) {
	g.asked(ctx)
	return nil, errors.New("no tree")
}

type clock struct{ Machine }

func (clock) Now() time.Duration { return time.Hour }

func debtor(t *testing.T, node, name string, asked func(context.Context)) *service {
	t.Helper()
	s := &supervisor{self: election.Node{Node: node}, cfg: Config{
		Logger: hclog.NewNullLogger(), Machine: clock{}, Observer: unobserved{}, Servers: []string{t.Name()},
	}}
	v := s.service(Service{Name: name})
	v.guard = treeless{asked: asked}
	t.Cleanup(func() { _ = os.Remove(v.debtsFile()) })
	return v
}

// A session may end while it is undone what a former supervisor, or term, has left: an address that stays would be on two hosts.
func TestWhatASessionsEndInterruptedIsUndoneInTheNext(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	tries := 0
	v := debtor(t, "a", "db", func(ctx context.Context) {
		if tries++; tries == 1 {
			end()
		}
	})
	v.debts, v.heir = []debt{{Name: "vip", Command: []string{"true"}, Timeout: time.Second}}, true
	for _, ctx := range []context.Context{ctx, t.Context()} {
		v.removed.Store(ctx == t.Context()) // then nothing else is done
		if err := v.serve(ctx, turn{epoch: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if tries != 2 || len(v.debts) != 0 {
		t.Errorf("undone %d times, still owed: %v", tries, v.debts)
	}
}

// A term that lost its lease leaves the undoing to be done beside; the next one may have to undo as well.
func TestNothingIsUndoneTwiceAtOnce(t *testing.T) {
	calls := make(chan struct{}, 2)
	goOn := make(chan struct{})
	v := debtor(t, "a", "db", func(context.Context) {
		calls <- struct{}{}
		<-goOn
	})
	v.debts = []debt{{Name: "vip", Command: []string{"true"}, Timeout: time.Second}}
	v.undoing.Go(func() { v.undoAll(t.Context()) })
	<-calls
	v.undoing.Go(func() { v.undoAll(t.Context()) })
	select {
	case <-calls:
		t.Error("it is undone a second time")
	case <-time.After(100 * time.Millisecond):
	}
	close(goOn)
	v.undoing.Wait()
}

// Two supervisors of one machine must not undo what the other's program needs: the names of nodes and services have dots.
func TestNodesOfOneMachineOweInFilesOfTheirOwn(t *testing.T) {
	one, other := debtor(t, "a.b", "c", nil), debtor(t, "a", "b.c", nil)
	if one.debtsFile() == other.debtsFile() {
		t.Errorf("both have %s", one.debtsFile())
	}
	one.owe(Program{Name: "vip", Undo: []string{"true"}})
	again := debtor(t, "a.b", "c", nil) // which vouches for nothing before that is undone
	if again.inherit(); len(again.debts) != 0 && again.owing.Load() != 1 {
		t.Errorf("%d debts, and it says that %d are owed", len(again.debts), again.owing.Load())
	}
	if err := os.Rename(one.debtsFile(), other.debtsFile()); err != nil {
		if os.Geteuid() == 0 {
			t.Fatal(err)
		}
		t.Skip("only root can write there: ", err)
	}
	if other.inherit(); len(other.debts) > 0 {
		t.Error("what another node owes is taken over")
	}
	if _, err := os.Stat(other.debtsFile()); err != nil {
		t.Error("what another node owes is forgotten")
	}
}
