package mount

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"understudy/supervisor/wait"
)

const (
	mostUsers = 5 // that are named
	// usersPatience is how long /proc is looked through: it hangs with a process that hangs.
	usersPatience = 2 * time.Second
)

// users says what keeps a directory's file system from being unmounted.
func users(directory string) string {
	in := func(path string) bool { return path == directory || strings.HasPrefix(path, directory+"/") }
	ctx, cancel := context.WithTimeout(context.Background(), usersPatience)
	defer cancel()
	found, err := wait.Call(ctx, func() (found []string, _ error) {
		all, err := table("/proc/self")
		for _, e := range all {
			if e.directory != directory && in(e.directory) {
				found = append(found, e.directory+" is mounted in it")
			}
		}
		for _, proc := range processes() {
			if uses(proc, in) {
				found = append(found, program(proc)+" has it open")
			}
		}
		return found, err
	}, nil)
	switch {
	case err != nil:
		return "not known by whom"
	case len(found) == 0:
		return "no program has it open, so an NFS export, a loop device or swap does"
	}
	return strings.Join(found[:min(len(found), mostUsers)], ", ")
}

// processes are their folders.
func processes() []string {
	all, _ := filepath.Glob("/proc/[0-9]*") // the pattern is a good one
	return all
}

func program(proc string) string {
	name, _ := os.ReadFile(filepath.Join(proc, "comm")) // it may have ended
	return fmt.Sprintf("%s (pid %s)", strings.TrimSpace(string(name)), filepath.Base(proc))
}

func uses(proc string, in func(path string) bool) bool {
	links, _ := filepath.Glob(proc + "/fd/*")
	for _, link := range append(links, proc+"/cwd", proc+"/root", proc+"/exe") {
		if path, err := os.Readlink(link); err == nil && in(path) {
			return true
		}
	}
	maps, _ := os.ReadFile(proc + "/maps")
	for line := range strings.Lines(string(maps)) {
		if at := strings.IndexByte(line, '/'); at >= 0 && in(strings.TrimSuffix(line[at:], "\n")) {
			return true
		}
	}
	return false
}

// elsewhere says who has a block device mounted, and where, if that can be seen: other processes may have other mounts.
func elsewhere(device string) string {
	for _, proc := range processes() {
		all, _ := table(proc)
		for _, e := range all {
			if e.number == device {
				return fmt.Sprintf(": %s has it mounted on %s", program(proc), e.directory)
			}
		}
	}
	return ""
}
