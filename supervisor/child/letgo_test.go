package child

import (
	"context"
	"errors"
	"testing"
	"time"

	"understudy/supervisor/guard"
)

// A stop that comes while a program is let go finds a program to ask, not one to kill.
func TestWhatWasLetGoIsWaitedFor(t *testing.T) {
	ours, theirs, err := socketPair()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	l := &launch{report: link{ours}, opens: func() error {
		cancel(errors.New("stop"))
		return nil
	}}
	if err := sendFD(int(theirs.Fd()), &guard.Message{Op: opReady}); err != nil {
		t.Fatal(err)
	}
	go func() { // the program
		if toldToGoOn(int(theirs.Fd())) {
			time.Sleep(20 * time.Millisecond) // its exec takes its time: nothing may come of the stop meanwhile
		}
		_ = theirs.Close()
	}()
	if m, err := l.hear(ctx); m != nil || err != nil {
		t.Errorf("%+v %v", m, err)
	}
}
