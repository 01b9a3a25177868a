package child

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"understudy/packaging/need"
	"understudy/supervisor/child/box"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/testbed/must"
)

// An init in a container reaps what is orphaned, and passes on signals and the supervisor's code.
func TestPID1ReapsAndPassesTheCodeOn(t *testing.T) {
	need.These(t, box.KindPidNS)
	cmd := exec.Command("/proc/self/exe")
	cmd.Args[0] = pid1Role
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWPID, Pdeathsig: unix.SIGKILL}
	in, err := cmd.StdinPipe()
	must.OK(t, err)
	out, err := cmd.StdoutPipe()
	must.OK(t, err)
	must.OK(t, cmd.Start())
	buf := make([]byte, 16)
	if n, err := out.Read(buf); err != nil || string(buf[:n]) != "ready\n" {
		t.Fatalf("%q %v", buf[:n], err)
	}
	// Orphans have gone through it by then; none is left as a zombie.
	deadline := time.Now().Add(patience)
	for zombies := 1; zombies > 0; {
		all, err := box.Processes()
		must.OK(t, err)
		zombies = 0
		for _, s := range box.Descendants(all, cmd.Process.Pid) {
			if s.State == 'Z' {
				zombies++
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d zombies", zombies)
		}
		wire.PollOne(-1, 0, time.Millisecond)
	}
	must.OK(t, cmd.Process.Signal(unix.SIGUSR1))
	asked := time.Now()
	err = cmd.Wait()
	if took := time.Since(asked); took > patience {
		t.Errorf("it has ended after %v: a daemon is nobody to wait for", took)
	}
	_ = in.Close()
	if cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("%v", err)
	}
}
