package handoff

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// script makes a binary of a shell script.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// What shares a session with a terminal can type into it.
func TestABinaryIsTriedInASessionOfItsOwn(t *testing.T) {
	facts := filepath.Join(t.TempDir(), "facts")
	path := script(t, "cut -d ' ' -f 6,7 /proc/self/stat >"+facts+"; readlink /proc/self/fd/0 >>"+facts+`; echo $$ >>`+facts+`; echo '{"handovers":[`+fmt.Sprint(version)+`]}'`)
	if _, err := Try(t.Context(), path, "", []string{"run"}, os.Environ()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(facts)
	if err != nil {
		t.Fatal(err)
	}
	var session, terminal, pid int
	var stdin string
	if _, err := fmt.Sscan(string(text), &session, &terminal, &stdin, &pid); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	if ours, _ := unix.Getsid(0); session == ours || session != pid || terminal != 0 || stdin != os.DevNull {
		t.Errorf("process %d: session %d (ours is %d), terminal %d, input %s", pid, session, ours, terminal, stdin)
	}
}

func TestABinaryThatIsTriedMaySayOnlySoMuch(t *testing.T) {
	_, err := Try(t.Context(), script(t, "head -c 10000000 /dev/zero | tr '\\0' x >&2; exit 1"), "", []string{"run"}, os.Environ())
	if err == nil || len(err.Error()) > mostSaid+100 || !strings.HasSuffix(err.Error(), "xxx") {
		t.Errorf("it is told with %d bytes", len(fmt.Sprint(err)))
	}
}
