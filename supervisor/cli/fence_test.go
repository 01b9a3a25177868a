package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"understudy/supervisor/testbed/must"
)

// Ctrl-C ends a question at once, and what is typed after it is for the shell.
func TestAQuestionEndsWithItsCommand(t *testing.T) {
	terminal, keys, err := os.Pipe()
	must.OK(t, err)
	defer terminal.Close()
	ctx, interrupt := context.WithCancel(t.Context())
	asked := make(chan error, 1)
	go func() {
		_, err := typed(ctx, terminal)
		asked <- err
	}()
	interrupt()
	select {
	case err := <-asked:
		if !errors.Is(err, errInterrupted) {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it still waits for a line")
	}
	if _, err := keys.WriteString("reboot\n"); err != nil {
		t.Fatal(err)
	}
	must.OK(t, keys.Close())
	if left, err := io.ReadAll(terminal); string(left) != "reboot\n" {
		t.Errorf("%q is left: %v", left, err)
	}
}

func TestAQuestionIsAnsweredByALine(t *testing.T) {
	for text, want := range map[string]string{"db-1\n": "db-1", "\tdb-1\r\nmore": "db-1", "db-1": "db-1", "": ""} {
		terminal, keys, err := os.Pipe()
		must.OK(t, err)
		if _, err := keys.WriteString(text); err != nil {
			t.Fatal(err)
		}
		must.OK(t, keys.Close())
		if got, err := typed(t.Context(), terminal); err != nil || got != want {
			t.Errorf("%q: %q, %v", text, got, err)
		}
		terminal.Close()
	}
}
