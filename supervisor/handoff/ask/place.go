package ask

import (
	"os"
	"path/filepath"
	"strings"

	"understudy/supervisor/handoff"
)

// startedFrom tells whether a process was started from a binary, whatever is there now.
func startedFrom(pid int, binary string) bool {
	if exe, err := os.Readlink(procFile(pid, "exe")); err != nil {
		return false
	} else if strings.TrimSuffix(exe, " (deleted)") == binary {
		return true
	}
	words := procWords(pid, "cmdline")
	if len(words) == 0 {
		return false
	}
	for _, path := range places(pid, words[0]) {
		if path == binary || handoff.SameFile(path, binary) {
			return true
		}
	}
	return false
}

// places are where a process with these words can have been started from.
func places(pid int, name string) (all []string) {
	if strings.Contains(name, "/") {
		if cwd, err := os.Readlink(procFile(pid, "cwd")); err == nil && !filepath.IsAbs(name) {
			name = filepath.Join(cwd, name)
		}
		return []string{filepath.Clean(name)}
	}
	for _, entry := range procWords(pid, "environ") {
		if path, ok := strings.CutPrefix(entry, "PATH="); ok {
			for _, dir := range filepath.SplitList(path) {
				if there := filepath.Join(dir, name); isFile(there) {
					return []string{there}
				}
			}
		}
	}
	return nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
