package handoff

import (
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
	if i.part() {
		t.Error("it would have been lost")
	}
	if <-i.Signals != syscall.SIGTERM {
		t.Error("it is lost")
	}
	i.Listen()
	asked = 1
	go answer()
	if i.part() {
		t.Error("one that is being carried out would have been lost")
	}
	asked = 0
	go answer()
	if !i.part() {
		t.Error("nothing has come, and it does not go on")
	}
}
