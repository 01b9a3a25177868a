// Package e2e tests the packages: what is in them, and what they do on machines that boot.
package e2e

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// The first thread stands for the whole process where others look at its namespaces.
func init() { runtime.LockOSThread() }

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("skipped by -short: it takes machines")
		os.Exit(0)
	}
	code := m.Run()
	if dir, err := scratch(); err == nil {
		os.RemoveAll(dir)
	}
	kit.RemoveBinaries()
	os.Exit(code)
}

var scratch = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "understudy-packages-") })

// Versions that are built: the one is upgraded to the other.
const (
	older = "1.0.0"
	newer = "1.1.0"
)

var (
	buildOlder = sync.OnceValues(func() (string, error) { return build(older, older) })
	buildNewer = sync.OnceValues(func() (string, error) { return build(newer, newer, "ARCHS="+runtime.GOARCH) })
)

// build makes packages in a folder of their own.
func build(name, version string, env ...string) (string, error) {
	dir, err := scratch()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, name)
	cmd := exec.Command("../build.sh", dir)
	cmd.Env = append(append(os.Environ(), "VERSION="+version), env...)
	return dir, run(cmd)
}

func packages(tb testing.TB, build func() (string, error)) string {
	tb.Helper()
	need.These(tb, "nspawn") // machines to install them on
	dir, err := build()
	must.OK(tb, err)
	return dir
}

// file is the one that matches.
func file(tb testing.TB, dir, pattern string) string {
	tb.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(found) != 1 {
		tb.Fatalf("%s in %s: %v, %v", pattern, dir, found, err)
	}
	return found[0]
}

type failed struct {
	cmd *exec.Cmd
	err error
	out []byte
}

func (f failed) Error() string { return f.cmd.String() + ": " + f.err.Error() + "\n" + string(f.out) }

func run(cmd *exec.Cmd) error {
	out, err := cmd.CombinedOutput()
	if err != nil {
		return failed{cmd, err, bytes.TrimSpace(out)}
	}
	return nil
}
