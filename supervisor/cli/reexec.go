package cli

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

	"github.com/spf13/cobra"

	"understudy/supervisor/child"
)

func reexecCommand() *cobra.Command {
	var pid int
	var all bool
	var timeout time.Duration
	var binary string
	cmd := &cobra.Command{
		Use:   "reexec [--pid PID | --all]",
		Short: "Have a running supervisor go on as the version installed now",
		Long: "Has the supervisor of this machine become the binary that is in its place now, as the same process. The programs\n" +
			"that it runs do not notice. The new binary is tried before: if it does not start, does not know what it is to go\n" +
			"on with, or refuses the config, everything stays as it is, and the exit code is 1. SIGUSR2 to the supervisor does\n" +
			"the same, without waiting: systemctl kill -s USR2 --kill-whom=main understudy\n\n" +
			"Without --pid it is looked for among the processes of the user who calls: anybody's may look like one. What --pid\n" +
			"names may be another user's; its arguments are then tried as that user.",
		Example: "  understudy reexec --all",
		Args:    exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), timeout, errTimeout)
			defer cancel()
			if cmd.Flags().Changed("pid") && pid <= 1 {
				return usage("--pid %d: that is no supervisor's", pid)
			}
			if binary == "" {
				own, err := os.Executable()
				if err != nil {
					return err
				}
				binary = own
			}
			found, err := running(binary, pid)
			switch {
			case err != nil:
				return err
			case len(found) == 0 && pid != 0:
				return fmt.Errorf("process %d is no supervisor that was started as %s: --binary says where it was started from", pid, binary)
			case len(found) == 0:
				return fmt.Errorf("no supervisor of this user runs here that was started as %s: --binary says where it was started from, --pid names another user's", binary)
			case len(found) > 1 && !all:
				return usage("several supervisors run here, as processes %v: say --pid PID or --all", found)
			}
			var errs []error
			named := pid != 0
			for _, pid := range found {
				if err := reexec(ctx, binary, pid, named); err != nil {
					errs = append(errs, fmt.Errorf("supervisor %d: %w", pid, err))
					continue
				}
				fmt.Fprintf(cmd.OutOrStdout(), "supervisor %d goes on as the installed version\n", pid)
			}
			return errors.Join(errs...)
		},
	}
	cmd.Flags().IntVar(&pid, "pid", 0, "the supervisor's process id (default: the one that runs)")
	cmd.Flags().BoolVar(&all, "all", false, "all supervisors of this machine")
	cmd.Flags().StringVar(&binary, "binary", "", "where the supervisor was started from (default: where this command was)")
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "how long to wait for it")
	return cmd
}

// running finds the supervisors whose binary is, or was, at a place: among all processes of our own user, or the one that is named.
// By its words and its binary anybody's process can look like one.
func running(binary string, only int) (pids []int, err error) {
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

// isGone tells whether a process is gone, but for its parent's taking note of it.
func isGone(pid int) bool {
	stat, err := os.ReadFile(procFile(pid, "stat"))
	return errors.Is(err, fs.ErrNotExist) || bytes.Contains(stat, []byte(") Z "))
}

// handedOver tells which image a process is of: another one each time.
func handedOver(pid int) string {
	for _, entry := range procWords(pid, "environ") {
		if value, ok := strings.CutPrefix(entry, child.LegacyEnv+"="); ok {
			return value
		}
	}
	return ""
}

// askAgain is how long it is waited before one that has refused is asked again: it may have been for the moment.
const askAgain = 5 * time.Second

// stands is how long a new image has to live to count as one that does.
const stands = 500 * time.Millisecond

// reexec has one supervisor become what is at its binary's place, and waits for that. named: somebody said that it is one.
func reexec(ctx context.Context, binary string, pid int, named bool) error {
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
	if _, err := tryImage(ctx, binary, dir, words[1:], environ, as.credential()); err != nil {
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
			return errors.New("it has ended: what it ran is ended, too, and handed over to another node")
		case now == was, now == "": // in the middle of an exec, nothing is told
		case since.IsZero():
			since = time.Now()
		case time.Since(since) > stands && !sameFile(procFile(pid, "exe"), binary):
			return fmt.Errorf("it goes on as another file than %s", binary)
		case time.Since(since) > stands:
			return nil
		}
	}
}
