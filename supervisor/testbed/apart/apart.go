// Package apart keeps the notes of supervisors that tests start away from those of this machine's own supervisors, and of other tests.
package apart

import (
	"fmt"
	"os"
	"testing"

	"understudy/supervisor/keyfile"
)

// Run is m.Run with a folder of its own for notes.
func Run(m *testing.M) int { return Do(m.Run) }

// Do is Run for what is no test. What an earlier run has noted would make the supervisors of this one wait: its data is not in ZooKeeper any more.
func Do(run func() (code int)) (code int) {
	if os.Getenv(keyfile.RunVariable) != "" { // this process is one that a test has started
		return run()
	}
	dir, err := os.MkdirTemp("", "us-") // short: there are sockets in it
	if err == nil {
		defer os.RemoveAll(dir)
		err = os.Chmod(dir, 0o755) // programs of other users reach their sockets
	}
	if err == nil {
		err = os.Setenv(keyfile.RunVariable, dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return run()
}
