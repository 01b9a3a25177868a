// Understudy keeps one copy of a program running, on one host of several.
package main

import (
	"fmt"
	"os"

	"understudy/supervisor"
	"understudy/supervisor/child"
	"understudy/supervisor/cli"
)

// version is set when a release is built.
var version = "dev"

func main() { os.Exit(run()) }

// run is a guardian, a child's init, or the command that a person typed: all are this binary.
func run() int {
	switch {
	case child.IsPID1(): // of a container: reap what others leave, and run as its child
		code, err := child.PID1Main()
		if err != nil {
			fmt.Fprintln(os.Stderr, "understudy:", err)
		}
		return code
	case child.IsGuardian():
		return supervisor.Guardian()
	case child.IsInit():
		return child.InitMain()
	}
	return cli.Main(version, os.Args[1:])
}
