package supervisor

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/unit"
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

// commands run under it.
func (g treeless) commands() *unit.Commands {
	return unit.NewCommands(func() unit.Guard { return g }, clock{}.Now)
}

type clock struct{ Machine }

func (clock) Now() time.Duration { return time.Hour }

// A session may end while it is undone what a former supervisor, or term, has left: an address that stays would be on two hosts.
func TestWhatASessionsEndInterruptedIsUndoneInTheNext(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	tries := 0
	guard := treeless{asked: func(context.Context) {
		if tries++; tries == 1 {
			end()
		}
	}}
	s := &supervisor{self: election.Node{Node: "a"}, commands: guard.commands(), cfg: Config{
		Logger: hclog.NewNullLogger(), Machine: clock{}, Observer: unobserved{}, Servers: []string{t.Name()},
	}}
	v := s.service(Service{Name: "db"})
	v.begun = true
	v.unit.Restore([]unit.Debt{{Name: "vip", Command: []string{"true"}, Timeout: time.Second}})
	for _, ctx := range []context.Context{ctx, t.Context()} {
		v.removed.Store(ctx == t.Context()) // then nothing else is done
		if err := v.serve(ctx, turn{epoch: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if tries != 2 || v.unit.Owes() {
		t.Errorf("undone %d times, still owed: %v", tries, v.unit.Debts())
	}
}

// idle is the unit of a service that has never run.
func idle() *unit.Unit { return unit.New(unit.Config{Logger: hclog.NewNullLogger()}) }
