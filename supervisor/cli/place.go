package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ownPlace is where this process's binary was found when it was started. What is there later is what an upgrade goes on as: a link
// stays a link, and a binary that is renamed meanwhile is not followed, as /proc/self/exe would.
func ownPlace() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	named, err := exec.LookPath(os.Args[0])
	if err != nil || !sameFile(named, exe) {
		return exe, nil
	}
	return filepath.Abs(named)
}

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
		if path == binary || sameFile(path, binary) {
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

func sameFile(one, other string) bool {
	a, err := os.Stat(one)
	if err != nil {
		return false
	}
	b, err := os.Stat(other)
	return err == nil && os.SameFile(a, b)
}
