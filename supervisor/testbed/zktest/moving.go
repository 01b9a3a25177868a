package zktest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Moving tells whether a thread of the process does not stand still: SIGSTOP reaches a thread when it is next scheduled, not when
// it is sent.
func Moving(pid int) bool {
	stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	return slices.ContainsFunc(stats, func(file string) bool {
		stat, err := os.ReadFile(file)
		_, rest, found := strings.Cut(string(stat), ") ")
		return err == nil && found && !strings.ContainsAny(rest[:1], "TtZX")
	})
}
