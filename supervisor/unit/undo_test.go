package unit

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
)

// treeless is a guard that makes no trees, and calls asked instead.
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

func debtor(t *testing.T, node, name string, asked func(context.Context)) *Unit {
	t.Helper()
	u := New(Config{
		Service: name, Node: node, Cluster: t.Name(), Logger: hclog.NewNullLogger(),
		Commands: NewCommands(func() Guard { return treeless{asked: asked} }, func() time.Duration { return time.Hour }),
	})
	t.Cleanup(func() { _ = os.Remove(u.debts.file) })
	return u
}

var vip = Debt{Name: "vip", Command: []string{"true"}, Timeout: time.Second}

// A term that lost its lease pays its debts in the background; the next term may do so as well.
func TestNothingIsUndoneTwiceAtOnce(t *testing.T) {
	calls := make(chan struct{}, 2)
	goOn := make(chan struct{})
	u := debtor(t, "a", "db", func(context.Context) {
		calls <- struct{}{}
		<-goOn
	})
	u.Restore([]Debt{vip})
	u.StartUndo(t.Context())
	<-calls
	u.StartUndo(t.Context())
	select {
	case <-calls:
		t.Error("it is undone a second time")
	case <-time.After(100 * time.Millisecond):
	}
	close(goOn)
	u.WaitUndone()
}

// Two supervisors of one machine must not undo what the other's program needs: the names of nodes and services have dots.
func TestNodesOfOneMachineOweInFilesOfTheirOwn(t *testing.T) {
	one, other := debtor(t, "a.b", "c", nil), debtor(t, "a", "b.c", nil)
	if one.debts.file == other.debts.file {
		t.Errorf("both have %s", one.debts.file)
	}
	one.debts.add(vip)
	again := debtor(t, "a.b", "c", nil) // which vouches for nothing before that is undone
	if again.LoadDebts(); len(again.Debts()) != 0 && !again.Owes() {
		t.Errorf("%d debts, and it says that nothing is owed", len(again.Debts()))
	}
	if err := os.Rename(one.debts.file, other.debts.file); err != nil {
		if os.Geteuid() == 0 {
			t.Fatal(err)
		}
		t.Skip("only root can write there: ", err)
	}
	if other.LoadDebts(); other.Owes() {
		t.Error("what another node owes is taken over")
	}
	if _, err := os.Stat(other.debts.file); err != nil {
		t.Error("what another node owes is forgotten")
	}
}
