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

// A version that cannot hand copies over refuses the config before the supervisor is asked. This one does not.
func TestThisVersionGoesOnWithCopies(t *testing.T) {
	for _, example := range []string{"redis-replicated", "warm-http", "redis"} {
		code, out, errs := says(t, "goes-on", "run", "--config", "../../examples/"+example+".yaml", "--node", "db-1")
		if code != 0 || !strings.Contains(out, `"handovers":[3,4]`) {
			t.Errorf("%s: code %d, %q, %q", example, code, out, errs)
		}
	}
}
