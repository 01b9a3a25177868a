package handoff

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"
)

// told sends this process a signal, and waits until an image has it.
func told(t *testing.T, i *Image, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(os.Getpid(), sig); err != nil {
		t.Fatal(err)
	}
	for limit := time.Now().Add(10 * time.Second); len(i.Signals) == 0; {
		if time.Now().After(limit) {
			t.Fatalf("%v is not heard", sig)
		}
	}
}

func TestNothingIsHandedOverWhenAnOrderToStopHasCome(t *testing.T) {
	i := NewImage()
	i.Listen()
	defer i.Hush()
	defer signal.Reset()
	told(t, i, syscall.SIGTERM)
	asked := 0
	answer := func() { (<-i.Heeded) <- i.MayGo(asked) }
	go answer()
	if i.part(false) {
		t.Error("it would have been lost")
	}
	if <-i.Signals != syscall.SIGTERM {
		t.Error("it is lost")
	}
	i.Listen()
	asked = 1
	go answer()
	if i.part(false) {
		t.Error("one that is being carried out would have been lost")
	}
	asked = 0
	go answer()
	if !i.part(false) {
		t.Error("nothing has come, and it does not go on")
	}
}

// Without a session, an upgrade that is wanted waits; what was got ready for it does not.
func TestACatcherDoesNotWaitForASession(t *testing.T) {
	i := NewImage()
	idle := make(chan time.Time) // taken only by who serves it
	ctx, cancel := context.WithCancel(context.Background())
	asked := make(chan bool, 1)
	go func() { asked <- i.ask(ctx, idle) }()
	select {
	case idle <- time.Now():
	case <-time.After(10 * time.Second):
		t.Error("it waits with what it has got ready")
	}
	<-i.Asked
	if !<-asked {
		t.Error("it is not asked for afterwards")
	}
	go func() { asked <- i.ask(ctx, idle) }()
	cancel()
	if <-asked {
		t.Error("it is taken for asked at the end")
	}
}
