// Package ask makes a running supervisor on this machine switch to the installed binary, for the command reexec.
package ask

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"understudy/supervisor/child"
	"understudy/supervisor/handoff"
)

// Running finds the supervisors whose binary is, or was, at a place: among all processes of our own user, or the one that is named.
// By its words and its binary anybody's process can look like one.
func Running(binary string, only int) (pids []int, err error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == 1 || only != 0 && pid != only { // a container's init has the supervisor as its child
			continue
		}
		if only == 0 && !isOurs(pid) {
			continue
		}
		words := procWords(pid, "cmdline")
		if len(words) < 2 || words[1] != "run" || !startedFrom(pid, binary) {
			continue
		}
		pids = append(pids, pid)
	}
	slices.Sort(pids)
	return pids, nil
}

func procFile(pid int, name string) string {
	return filepath.Join("/proc", strconv.Itoa(pid), name)
}

// procWords reads what the kernel keeps with a zero byte behind each word.
func procWords(pid int, name string) []string {
	raw, err := os.ReadFile(procFile(pid, name))
	if err != nil || len(raw) == 0 {
		return nil
	}
	var words []string
	for word := range bytes.SplitSeq(bytes.TrimSuffix(raw, []byte{0}), []byte{0}) {
		words = append(words, string(word))
	}
	return words
}

// isGone tells whether a process has ended, whether or not its parent has waited for it.
func isGone(pid int) bool {
	stat, err := os.ReadFile(procFile(pid, "stat"))
	return errors.Is(err, fs.ErrNotExist) || bytes.Contains(stat, []byte(") Z "))
}

// handedOver tells a process's images apart: it is another value after each exec.
func handedOver(pid int) string {
	for _, entry := range procWords(pid, "environ") {
		if value, ok := strings.CutPrefix(entry, child.LegacyEnv+"="); ok {
			return value
		}
	}
	return ""
}

// askAgain is how long to wait before a supervisor that refused is asked again: its reason may have passed.
const askAgain = 5 * time.Second

// startedFor is how long a new image has to live to count as started.
const startedFor = 500 * time.Millisecond

// Reexec has one supervisor become what is at its binary's place, and waits for that. named: somebody said that it is one.
func Reexec(ctx context.Context, binary string, pid int, named bool) error {
	process, err := os.FindProcess(pid) // a handle: what has the same pid later is not taken for it
	if err != nil {
		return fmt.Errorf("it is gone: %w", err)
	}
	defer func() { _ = process.Release() }()
	words, environ, was := procWords(pid, "cmdline"), procWords(pid, "environ"), handedOver(pid)
	as, err := whose(pid)
	if err != nil || len(words) < 2 || words[1] != "run" || !named && !isOurs(pid) || process.Signal(syscall.Signal(0)) != nil {
		return errors.New("it is gone")
	}
	dir := procFile(pid, "cwd")
	if there, err := os.Readlink(dir); err == nil && as.credential() != nil { // another user may not go by /proc
		dir = there
	}
	if _, err := handoff.Try(ctx, binary, dir, words[1:], environ, as.credential()); err != nil {
		return err
	}
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	var since, asked time.Time
	for {
		if since.IsZero() && time.Since(asked) > askAgain {
			if err := process.Signal(syscall.SIGUSR2); err != nil {
				return fmt.Errorf("ask it: %w", err)
			}
			asked = time.Now()
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return fmt.Errorf("it goes on as before, its log says why: %w", context.Cause(ctx))
		}
		switch now := handedOver(pid); {
		case isGone(pid):
			return errors.New("it has ended: its programs are stopped, and other nodes take them over")
		case now == was, now == "": // in the middle of an exec, nothing is told
		case since.IsZero():
			since = time.Now()
		case time.Since(since) > startedFor && !handoff.SameFile(procFile(pid, "exe"), binary):
			return fmt.Errorf("it runs another file now than %s", binary)
		case time.Since(since) > startedFor:
			return nil
		}
	}
}
