package box

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"understudy/supervisor/child/wire"
)

// SweepUnit is for the ExecStopPost= of a systemd unit: it ends the processes left in the unit when its supervisor has ended,
// for any reason. Guardians first get time for their work: to end the trees, and to close the session, which hands the
// services over. SweepUnit then kills the rest, for example if all three were killed at once.
// It returns the cgroup of the unit.
func SweepUnit(ctx context.Context, patience time.Duration) (unit string, err error) {
	own, err := CgroupBase()
	if err != nil {
		return "", err
	}
	unit, ok := strings.CutSuffix(own, "/.control") // where systemd puts what it runs beside a delegated unit's main process
	if !ok {
		return "", fmt.Errorf("%s belongs to no unit: use this in ExecStopPost= of a unit with Delegate=yes", own)
	}
	return unit, sweepUnit(ctx, unit, patience)
}

func sweepUnit(ctx context.Context, unit string, patience time.Duration) error {
	for limit := wire.Now() + patience; ; wire.PollOne(-1, 0, 2*time.Millisecond) {
		pids, err := Members(unit)
		if err != nil {
			return err
		}
		if !HasGuardian(pids) || wire.Now() >= limit || ctx.Err() != nil {
			break
		}
	}
	bounded, cancel := context.WithTimeout(ctx, SweepLimit)
	defer cancel()
	left, err := Sweep(bounded, unit, hclog.NewNullLogger())
	for _, o := range left {
		err = errors.Join(err, fmt.Errorf("%w: %s: %v", ErrUnproved, filepath.Base(o.Path), o.Leftover()))
	}
	// The unit's own cgroup is used again at its next start, so it is not killed as one (see RunCgroup): a fork may be quicker than
	// one look.
	for limit := wire.Now() + time.Second; ; wire.PollOne(-1, 0, time.Millisecond) {
		pids, readErr := Members(unit)
		if readErr != nil || len(pids) == 0 {
			return errors.Join(err, readErr)
		}
		if wire.Now() >= limit {
			return errors.Join(err, fmt.Errorf("processes that SIGKILL does not end: %v", pids))
		}
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

// Members lists the processes of a cgroup itself, without those of cgroups inside it.
func Members(cgroup string) ([]int, error) {
	text, err := os.ReadFile(filepath.Join(cgroup, "cgroup.procs"))
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var pids []int
	for word := range strings.FieldsSeq(string(text)) {
		if pid, err := strconv.Atoi(word); err == nil && pid > 1 { // 0: a process of another PID namespace
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// GuardianMark is in the title of a guardian's process.
const GuardianMark = " guardian "

// HasGuardian reports whether a guardian is among processes.
func HasGuardian(pids []int) bool {
	for _, pid := range pids {
		line, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		if title, _, _ := bytes.Cut(line, []byte{0}); bytes.Contains(title, []byte(GuardianMark)) {
			return true
		}
	}
	return false
}
