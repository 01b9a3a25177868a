package inside

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child/box"
)

// IsPID1 reports whether this process is the init of a container. Then main only calls PID1Main.
func IsPID1() bool {
	return os.Getpid() == 1 && !IsInit() && !strings.Contains(os.Args[0], box.GuardianMark)
}

const lingerLimit = 35 * time.Second // after the supervisor; the guardians need at most 30 s

// PID1Main does an init's duty for the supervisor, which it starts as a process of its own: one process cannot both reap
// all orphans and leave the statuses of its own children alone. It passes signals on, and returns the supervisor's code
// once the guardians have done their work too: the kernel kills them together with this process. All other processes die
// with it: P4, even if supervisor and guardians were killed at once.
func PID1Main() (int, error) {
	box.ReserveThreads(stubThreads) // with this process, the container ends
	signals := make(chan os.Signal, 64)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGWINCH)
	defer signal.Stop(signals)
	attr := &os.ProcAttr{Env: os.Environ(), Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: &syscall.SysProcAttr{Setpgid: true}}
	if _, err := unix.IoctlGetTermios(0, unix.TCGETS); err == nil {
		attr.Sys.Foreground = true // Ctrl-C reaches the supervisor once, and only from the terminal
	}
	process, err := os.StartProcess("/proc/self/exe", os.Args, attr)
	if err != nil {
		return 1, fmt.Errorf("start the supervisor: %w", err)
	}
	supervisor := process.Pid
	_ = process.Release()
	ended := make(chan int, 1)
	reaped := make(chan struct{}, 1) // a process was, since the last look
	go func() {                      // ends with the process, or when there is no child left
		for {
			var ws unix.WaitStatus
			pid, err := unix.Wait4(-1, &ws, 0, nil) // one at a time, and no sleep while there is one
			if errors.Is(err, unix.ECHILD) {
				return
			}
			if err == nil && pid == supervisor {
				ended <- ExitCode(syscall.WaitStatus(ws))
			}
			select {
			case reaped <- struct{}{}:
			default:
			}
		}
	}()
	for {
		select {
		case s := <-signals:
			_ = unix.Kill(supervisor, s.(syscall.Signal)) // it cannot be another process: this loop ends with it
		case code := <-ended:
			linger := time.NewTimer(lingerLimit)
			defer linger.Stop()
			for box.HasGuardian(adopted()) {
				select {
				case <-reaped:
				case <-linger.C:
					return code, nil
				}
			}
			return code, nil
		}
	}
}

// adopted lists this process's children; those of the supervisor are among them once it is gone.
func adopted() (pids []int) {
	own, _ := os.Readlink("/proc/self") // 1, unless /proc is another namespace's
	all, _ := box.Processes()
	for _, s := range all {
		if strconv.Itoa(s.Ppid) == own {
			pids = append(pids, s.Pid)
		}
	}
	return pids
}
