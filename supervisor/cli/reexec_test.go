package cli

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"

	"understudy/supervisor/testbed/must"
)

// Between the first line of main and the supervisor's start lie milliseconds.
func TestAnOrderToStopIsKeptUntilItCanBeCarriedOut(t *testing.T) {
	ctx := withImage(context.Background())
	i := imageOf(ctx)
	defer i.Hush()
	must.OK(t, syscall.Kill(os.Getpid(), syscall.SIGTERM))
	if again := imageOf(ctx); <-again.Signals != syscall.SIGTERM {
		t.Error("another one has it")
	}
}

// Who was not found was started from another place, or is something else: the message has to say where was looked.
func TestReexecSaysWhomItHasNotFound(t *testing.T) {
	for words, want := range map[string]string{
		"--binary /nowhere/understudy": "understudy: no supervisor of this user runs here that was started as /nowhere/understudy: use --binary PATH or --pid PID\n",
		"--pid 99999":                  "understudy: --pid 99999: no such supervisor\n",
	} {
		code, out, errs := says(t, append([]string{"reexec"}, strings.Fields(words)...)...)
		if code != 1 || out != "" || errs != want {
			t.Errorf("%s: code %d, %q, %q", words, code, out, errs)
		}
	}
}

// The copies of a replicated program cannot be handed over. That is said before the supervisor is asked, and it keeps running.
func TestNoVersionGoesOnWithCopies(t *testing.T) {
	code, out, errs := says(t, "goes-on", "run", "--config", "../../examples/redis-replicated.yaml", "--node", "db-1")
	if want := "understudy: redis is replicated, and copies cannot be handed over: restart the supervisor instead (systemctl restart understudy)\n"; code != 1 || out != "" || errs != want {
		t.Errorf("code %d, %q, %q", code, out, errs)
	}
	if code, out, errs = says(t, "goes-on", "run", "--config", "../../examples/redis.yaml", "--node", "db-1"); code != 0 {
		t.Errorf("code %d, %q, %q", code, out, errs)
	}
}
