package box

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/must"
)

// P2: whoever does not see a process in /proc, as where that hides those of others, does not call it dead.
func TestAProcessThatIsHiddenIsNotDead(t *testing.T) {
	need.These(t, "root")
	cmd := exec.Command("sleep", "1000")
	must.OK(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	s, err := StatOf(cmd.Process.Pid)
	must.OK(t, err)
	done := make(chan struct{})
	go func() { // its thread ends with it, since it is not unlocked
		defer close(done)
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			t.Error(err)
			return
		}
		must.Report(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
		must.Report(t, unix.Mount("none", "/proc", "tmpfs", 0, ""))
		if _, err := os.Stat("/proc/self"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("/proc is there: %v", err)
		}
		if one, err := holdNamed(s.Pid, s.Start); one != nil || !errors.Is(err, ErrUnproved) {
			t.Errorf("%v, %v", one, err)
		}
	}()
	<-done
}
