package handoff

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
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

// The next image would load what the files say at once, and stop what an emptied one does not give any more.
func TestNoUpgradeWhileTheFilesMustNotBeLoaded(t *testing.T) {
	here := OfferOf("a", "/r", "", nil)
	answer, err := json.Marshal(here)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	i := NewImage()
	i.place = script(t, "echo '"+string(answer)+"'")
	i.Begin(here, hclog.New(&hclog.LoggerOptions{Output: &log}))
	held := []error{errors.New("it is emptied"), nil}
	i.Held = func() error { why := held[0]; held = held[1:]; return why }
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- i.Run(ctx) }()
	i.wanted <- syscall.SIGUSR2
	i.wanted <- syscall.SIGUSR2
	<-i.Asked
	cancel()
	<-done
	if len(held) != 0 || strings.Count(log.String(), "why=\"it is emptied\"") != 1 {
		t.Errorf("it was asked for at the first time: %s", log.String())
	}
}
