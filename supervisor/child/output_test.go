package child

import (
	"context"
	"testing"
	"time"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/stuck"
	"understudy/supervisor/wait"
)

// ended is a command that has ended at once.
type ended struct{}

func (ended) Wait(context.Context) (ExitStatus, error) { return ExitStatus{}, nil }

func (ended) Kill(context.Context) error { return nil }

// A process that keeps a command's output locked in the kernel holds up no check.
func TestAnOutputThatCannotBeReadHoldsNobodyUp(t *testing.T) {
	need.These(t, "root")
	var reach wait.Reach
	var frees []func()
	results := make(chan Result, 1)
	ask := func() {
		result, err := Output(t.Context(), &reach, func(_ context.Context, spec Spec) (ended, error) {
			frees = append(frees, stuck.Pipe(t, spec.Stdout))
			return ended{}, nil
		}, Spec{})
		if err == nil {
			t.Error("nothing tells that its output is missing")
		}
		results <- result
	}
	go ask()
	select {
	case r := <-results:
		if len(r.Output) > 0 {
			t.Errorf("its output is %q", r.Output)
		}
	case <-time.After(20 * time.Second):
		t.Error("it does not end")
	}
	for _, free := range frees {
		free()
	}
}
