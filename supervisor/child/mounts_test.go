package child

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"understudy/packaging/need"
	"understudy/supervisor/child/box"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/testbed/must"
)

// innerHalf reports whether this process runs the inner half of a test. If it does not, it runs that, started by a command.
func innerHalf(t *testing.T, by ...string) bool {
	t.Helper()
	const inner = "UNDERSTUDY_TEST_INNER"
	if os.Getenv(inner) != "" {
		return true
	}
	exe, err := os.Executable()
	must.OK(t, err)
	cmd := exec.Command(by[0], append(by[1:], exe, "-test.run", "^"+t.Name()+"$", "-test.v")...)
	cmd.Env = append(os.Environ(), inner+"=1")
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	t.Logf("%s", text)
	return false
}

// An init that shares the mounts of its supervisor leaves them alone: a /proc of its own would be everybody's, and show nobody a process.
// The inner half has mounts of its own, in case that it does not.
func TestAnInitWithoutMountsOfItsOwnMountsNothing(t *testing.T) {
	need.These(t, "root")
	needKind(t, box.KindPidNS)
	if !innerHalf(t, "unshare", "--mount", "--propagation", "private") {
		return
	}
	s, err := waitingStub(box.Container{Kind: box.KindPidNS}, box.StubMark+"mounts")
	must.OK(t, err)
	defer s.Abort()
	if m, err := s.NextMessage(t.Context(), 30*time.Second); err != nil || m.Op != wire.OpReady {
		t.Fatalf("%+v, %v", m, err)
	}
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Fatalf("this process is not in /proc any more: %v", err)
	}
}
