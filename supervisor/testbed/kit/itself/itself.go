// Package itself has a test binary be the program that it tests, so that nothing has to be built.
package itself

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"understudy/supervisor"
	"understudy/supervisor/child/guardian"
	"understudy/supervisor/child/inside"
	"understudy/supervisor/cli"
	"understudy/supervisor/testbed/apart"
)

const (
	name     = "understudy"
	variable = "UNDERSTUDY_BINARY" // which kit.UnderstudyBinary reads
)

func init() { runtime.LockOSThread() } // as main.go does

// Main is a TestMain. The test binary is a guardian, a child's init, or, under its other name, the command that a person types.
func Main(m *testing.M) {
	switch {
	case guardian.Is():
		runtime.UnlockOSThread()
		os.Exit(supervisor.Guardian())
	case inside.IsInit():
		runtime.UnlockOSThread()
		os.Exit(inside.InitMain())
	case filepath.Base(os.Args[0]) == name:
		os.Exit(cli.Main("test", "", os.Args[1:]))
	}
	os.Exit(run(m))
}

// run gives the test binary its other name, unless another binary is to be tested.
func run(m *testing.M) int {
	if os.Getenv(variable) != "" {
		return apart.Run(m)
	}
	dir, err := os.MkdirTemp("", "understudy-itself-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	link := filepath.Join(dir, name)
	exe, err := os.Executable()
	if err == nil {
		err = os.Symlink(exe, link)
	}
	if err == nil {
		err = os.Setenv(variable, link)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return apart.Run(m)
}
