package handoff

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"understudy/supervisor/wait"
)

// When the reason of a supervisor that has refused may have passed, and how long a new image has to live to count as started.
const askAgain, startedFor = 5 * time.Second, 500 * time.Millisecond

// ErrNoSupervisor says that no process with that id is a supervisor.
var ErrNoSupervisor = errors.New("no such supervisor")

// Supervisors are the processes of this user that were started as `BINARY run`, whatever is at the binary's place now.
func Supervisors(binary string) (pids []int, err error) {
	entries, err := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, _ := strconv.Atoi(entry.Name())
		words := runWords(pid)
		if pid == 1 || words == nil || !isOurs(pid) { // a container's init has the supervisor as its child
			continue
		}
		exe, _ := os.Readlink(procFile(pid, "exe")) // "": it is gone
		named, _ := exec.LookPath(words[0])
		if strings.TrimSuffix(exe, " (deleted)") == binary || SameFile(named, binary) {
			pids = append(pids, pid)
		}
	}
	return pids, err
}

func procFile(pid int, name string) string { return fmt.Sprintf("/proc/%d/%s", pid, name) }

// procText is "" if the process is gone.
func procText(pid int, name string) string {
	text, _ := os.ReadFile(procFile(pid, name))
	return string(text)
}

// runWords are the words of a process that was started as `run`, nil for another one.
func runWords(pid int) []string {
	words := strings.Split(strings.TrimSuffix(procText(pid, "cmdline"), "\x00"), "\x00")
	if len(words) < 2 || words[1] != "run" {
		return nil
	}
	return words
}

// isOurs reports whether a process has this user's ids alone, and is in this PID namespace: a file may be set-uid, and root in a
// container may be a stranger. No process can write to its status. The owner of files in /proc proves nothing: it is root for each
// process that is not dumpable.
func isOurs(pid int) bool {
	status, uids := procText(pid, "status"), fmt.Sprintf("\nUid:\t%d\t%[1]d\t%[1]d\t%[1]d\n", os.Geteuid())
	return strings.Contains(status, uids) && strings.Contains(status, fmt.Sprintf("\nNSpid:\t%d\n", pid))
}

// Ask has a supervisor become what is at its binary's place. If it is this user's, Ask tries the binary, waits, and returns true. To
// another user's it sends the signal and does no more: what that user wrote is not run here.
func Ask(ctx context.Context, binary string, pid int) (became bool, err error) {
	process, _ := os.FindProcess(pid) // never fails. A handle: what has the same pid later is not taken for it
	words, environ, ours := runWords(pid), procText(pid, "environ"), isOurs(pid)
	if words == nil {
		return false, ErrNoSupervisor
	} else if !ours {
		return false, process.Signal(syscall.SIGUSR2)
	} else if err := process.Signal(syscall.Signal(0)); err != nil { // it may not be the one that was read
		return false, err
	}
	if _, err := Try(ctx, binary, procFile(pid, "cwd"), words[1:], strings.Split(environ, "\x00")); err != nil {
		return false, err
	}
	var asked, since time.Time
	for {
		if since.IsZero() && time.Since(asked) > askAgain {
			_, asked = process.Signal(syscall.SIGUSR2), time.Now() // whether it is gone shows below
		}
		if !wait.For(ctx, Look) {
			return false, fmt.Errorf("it goes on as before, its log gives the reason: %w", context.Cause(ctx))
		}
		switch now := procText(pid, "environ"); { // which an exec adds to
		case process.Signal(syscall.Signal(0)) != nil:
			return false, errors.New("it has ended: its programs are stopped, and other nodes take them over")
		case now == environ || now == "": // an image that has just begun shows nothing
		case since.IsZero():
			since = time.Now()
		case time.Since(since) > startedFor && !SameFile(procFile(pid, "exe"), binary):
			return false, fmt.Errorf("it runs another file now than %s", binary)
		case time.Since(since) > startedFor:
			return true, nil
		}
	}
}
