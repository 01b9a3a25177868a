package cli

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/must"
)

// P2: in a PID namespace with mounts of its own nobody else sees what is mounted, and what the host has mounted is not seen.
func TestNothingIsMountedWhereNobodySeesIt(t *testing.T) {
	need.These(t, "root")
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
		must.Report(t, os.Mkdir("/proc/1", 0o755))
		must.Report(t, os.WriteFile("/proc/1/cmdline", []byte("understudy init of us-0123456789\x00pidns with mounts"), 0o600))
		for _, word := range []string{"up", "down", "watch", "probe"} {
			code, _, errs := says(t, "mount", word, "--device", "/dev/no/such", "--type", "ext4", filepath.Join(t.TempDir(), "data"))
			if code == 0 || !strings.Contains(errs, errHidden.Error()) {
				t.Errorf("%s: code %d, %q", word, code, errs)
			}
		}
	}()
	<-done
}
