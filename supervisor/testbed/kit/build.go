package kit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/must"
)

// The binaries are built once a process, as they are shipped: static, so that they run on any machine. And without the race
// detector, which would slow down what is measured.
var (
	understudy = sync.OnceValues(func() (string, error) { return build("understudy", "understudy") })
	child      = sync.OnceValues(func() (string, error) { return build("child", "understudy/supervisor/testbed/child") })
)

// UnderstudyBinary is the program under test: the one that UNDERSTUDY_BINARY names, else built from the source, for root alone: a static
// build shares little with the tests' own.
func UnderstudyBinary(tb testing.TB) string {
	tb.Helper()
	if path := os.Getenv("UNDERSTUDY_BINARY"); path != "" {
		return path
	}
	need.These(tb, "root")
	return built(tb, understudy)
}

// ChildBinary is the wrapped program.
func ChildBinary(tb testing.TB) string {
	tb.Helper()
	return built(tb, child)
}

func built(tb testing.TB, path func() (string, error)) string {
	tb.Helper()
	name, err := path()
	must.OK(tb, err)
	return name
}

var binaries = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "understudy-e2e-bin-") })

func build(name, pkg string) (string, error) {
	dir, err := binaries()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	cmd := exec.Command("go", "build", "-o", path, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return path, nil
}

// RemoveBinaries ends what the package keeps for the whole process. Call it last.
func RemoveBinaries() {
	if dir, err := binaries(); err == nil {
		os.RemoveAll(dir)
	}
}
