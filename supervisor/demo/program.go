package demo

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// began is when this process began, as near as it can tell: what it measures of an overlap is rather too much.
var began = now()

// Program is what a node runs: it signs, every millisecond, that it runs. What is in the page cache survives SIGKILL. With a command it
// runs that, and signs until that has ended.
func Program(ctx context.Context, dir string, command []string) error {
	// In a PID namespace of its own every run has the same pid.
	name := fmt.Sprintf("%s,%s,%d.life", os.Getenv("UNDERSTUDY_NODE"), os.Getenv("UNDERSTUDY_TOKEN"), int64(began))
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("sign of life: %w", err)
	}
	defer f.Close()
	sign := func() error {
		_, err := f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(now())), 0)
		return err
	}
	over, ended := ctx.Done(), make(chan error, 1)
	if len(command) > 0 {
		over = nil             // it is the command's end that counts
		runtime.LockOSThread() // with which the command would die
		defer runtime.UnlockOSThread()
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			return err
		}
		go func() { ended <- cmd.Wait() }() // which we wait for
	}
	beat := time.NewTicker(time.Millisecond)
	defer beat.Stop()
	for {
		if err := sign(); err != nil {
			return fmt.Errorf("sign of life: %w", err)
		}
		select {
		case <-beat.C:
		case err := <-ended:
			return errors.Join(sign(), err)
		case <-over:
			return sign()
		}
	}
}

// signs are what the programs have left in a folder.
type signs string

// lives are those so far.
func (s signs) lives() (all []life) {
	files, _ := filepath.Glob(filepath.Join(string(s), "*.life"))
	for _, file := range files {
		var l life
		parts := strings.Split(strings.TrimSuffix(filepath.Base(file), ".life"), ",")
		data, err := os.ReadFile(file)
		if err != nil || len(data) < 8 || len(parts) != 3 {
			continue
		}
		first, _ := strconv.ParseInt(parts[2], 10, 64)
		l.node, l.first, l.last = parts[0], time.Duration(first), time.Duration(binary.NativeEndian.Uint64(data))
		l.token, _ = strconv.ParseInt(parts[1], 10, 64)
		all = append(all, l)
	}
	return all
}

// now is CLOCK_MONOTONIC, which all processes of a machine share.
func now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // every Linux has this clock
	}
	return time.Duration(ts.Nano())
}

// life is one run of the program: first and last sign of it.
type life struct {
	node        string
	token       int64
	first, last time.Duration
}

// handover is what lay between a life and the ones before it.
type handover struct {
	from, to     life
	gap, overlap time.Duration
}

// handovers goes through all lives in the order of their starts.
func handovers(lives []life) (all []handover) {
	slices.SortFunc(lives, func(a, b life) int { return cmp.Compare(a.first, b.first) })
	var from life // the one that lasted longest so far
	for i, to := range lives {
		h := handover{from: from, to: to, gap: max(to.first-from.last, 0)}
		if from.last >= to.first {
			h.overlap = max(min(from.last, to.last)-to.first, time.Nanosecond)
		}
		if i > 0 {
			all = append(all, h)
		}
		if i == 0 || to.last > from.last {
			from = to
		}
	}
	return all
}

// newest is the life that began last; nothing before the first.
func newest(lives []life) (life, bool) {
	if len(lives) == 0 {
		return life{}, false
	}
	return slices.MaxFunc(lives, func(a, b life) int { return cmp.Compare(a.first, b.first) }), true
}
