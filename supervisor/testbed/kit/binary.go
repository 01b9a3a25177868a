package kit

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"understudy/supervisor/testbed/must"
)

// Binary is the file of an installed understudy, which may be replaced while it runs.
type Binary string

// Install puts a copy of the program under test where the test can replace it.
func Install(tb testing.TB) Binary {
	tb.Helper()
	b := Binary(filepath.Join(tb.TempDir(), "understudy"))
	b.Replace(tb, UnderstudyBinary(tb))
	return b
}

// Replace does what a package manager does: another file takes the place of the one that runs.
func (b Binary) Replace(tb testing.TB, with string) {
	tb.Helper()
	from, err := os.Open(with)
	must.OK(tb, err)
	defer from.Close()
	to, err := os.OpenFile(string(b)+"~", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	must.OK(tb, err)
	_, err = io.Copy(to, from)
	must.OK(tb, errors.Join(err, to.Close(), os.Rename(string(b)+"~", string(b))))
}

// Script makes a binary of a shell script.
func Script(tb testing.TB, text string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "script")
	must.OK(tb, os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755))
	return path
}

// Reexec asks a supervisor to go on as what is installed now, and returns what came of it.
func (b Binary) Reexec(tb testing.TB, s *Supervisor) Result {
	tb.Helper()
	cmd := exec.Command(UnderstudyBinary(tb), "reexec", "--pid", strconv.Itoa(s.Pid), "--binary", string(b), "--timeout", "20s")
	out, _ := cmd.CombinedOutput() // the code tells
	return Result{Out: string(out), Code: cmd.ProcessState.ExitCode()}
}

// Upgraded demands that an upgrade works.
func (b Binary) Upgraded(tb testing.TB, s *Supervisor) {
	tb.Helper()
	if r := b.Reexec(tb, s); r.Code != 0 {
		tb.Fatalf("reexec ended with %d: %s", r.Code, r.Out)
	}
}
