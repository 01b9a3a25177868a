// Understudy keeps one copy of a program running, on one host of several.
package main

import (
	_ "embed"
	"fmt"
	"os"
	"runtime"

	"understudy/supervisor"
	"understudy/supervisor/child/guardian"
	"understudy/supervisor/child/inside"
	"understudy/supervisor/cli"
)

// version is set when a release is built.
var version = "dev"

// operations is what `understudy explain` knows.
//
//go:embed docs/operations.md
var operations string

// init keeps the main goroutine on the main thread: from there a supervisor forks what dies with it, and becomes another version.
func init() { runtime.LockOSThread() }

func main() { os.Exit(run()) }

// run is a guardian, a child's init, or the command that a person typed: all are this binary.
func run() int {
	if inside.IsPID1() || guardian.Is() || inside.IsInit() {
		runtime.UnlockOSThread() // they know by themselves what they need
	}
	switch {
	case inside.IsPID1(): // of a container: reap what others leave, and run as its child
		code, err := inside.PID1Main()
		if err != nil {
			fmt.Fprintln(os.Stderr, "understudy:", err)
		}
		return code
	case guardian.Is():
		return supervisor.Guardian()
	case inside.IsInit():
		return inside.InitMain()
	}
	return cli.Main(version, operations, os.Args[1:])
}
