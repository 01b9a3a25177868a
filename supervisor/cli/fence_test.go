package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/election"
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

// The one command that can make two copies run takes no silence for a yes: without a terminal nobody was asked.
func TestNobodyIsConfirmedDeadUnasked(t *testing.T) {
	addr := emptyCluster(t)
	conn, _, err := zk.Connect([]string{addr}, 10*time.Second, zk.WithLogInfo(false))
	must.OK(t, err)
	defer conn.Close()
	p := election.Paths{Root: "/understudy", Service: "db"}
	for _, path := range []string{"/understudy", election.ServicesDir("/understudy"), p.Dir(), p.Crumb()} {
		var data []byte
		if path == p.Crumb() {
			data = []byte(`{"node":"h1","session":"0x1"}`)
		}
		_, err := conn.Create(path, data, 0, zk.WorldACL(zk.PermAll))
		must.OK(t, err)
	}
	for _, c := range []struct {
		line string
		code int
		want string
	}{
		{"fence confirm db --node h2", 1, `no node "h2"`},
		{"fence confirm db --node h1", 2, "add --yes if you have made sure that h1 is off, or that no process of db is left there"},
		{"fence confirm db --node h1 --yes", 0, "Confirmed: the program of db on h1"},
	} {
		code, out, errs := says(t, strings.Fields(c.line+" --zk "+addr)...)
		if code != c.code || !strings.Contains(out+errs, c.want) {
			t.Errorf("%s: code %d, %q, %q", c.line, code, out, errs)
		}
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
