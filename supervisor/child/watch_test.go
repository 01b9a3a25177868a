package child

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"understudy/packaging/need"
	"understudy/supervisor/child/box"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/guard"
)

func TestClosingIsTriedAgain(t *testing.T) {
	tried := 0
	c, err := newClosing(func(context.Context, guard.Closing) error {
		if tried++; tried < 3 {
			return errors.New("no network")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(c.bell)
	c.start(guard.Closing{Epoch: 1, All: true})
	wire.PollOne(c.bell, unix.POLLIN, patience)
	if ended := c.ended(); len(ended) != 1 || ended[0].Err != nil || ended[0].Epoch != 1 || !ended[0].All || tried != 3 {
		t.Fatalf("tried %d times: %+v", tried, ended)
	}
}

func TestOwnCgroupIsFound(t *testing.T) {
	const v2 = "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
	const hybrid = "29 24 0:25 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n42 24 0:39 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
	for _, c := range []struct{ own, mounts, want string }{
		{"0::/system.slice/understudy.service\n", v2, "/sys/fs/cgroup/system.slice/understudy.service"},
		{"4:pids:/x\n0::/\n", hybrid, "/sys/fs/cgroup/unified/understudy"},
		{"0::/a/b\n", "1 2 0:1 /a /mnt/my\\040cgroup rw shared:1 - cgroup2 none rw\n", "/mnt/my cgroup/b"},
		{"0::/ab\n", "1 2 0:1 /a /mnt rw - cgroup2 none rw\n", ""},
		{"0::/../x\n", v2, ""},
		{"4:pids:/x\n", hybrid, ""},
		{"0::/\n", "", ""},
	} {
		got, err := box.BaseFrom(c.own, c.mounts)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q: %q, %v", c.own, got, err)
		}
	}
}

func FuzzStatLine(f *testing.F) {
	own, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(own))
	f.Add("1 (a) b) (c) Z 0 1 1 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 5 0")
	f.Fuzz(func(t *testing.T, line string) {
		s, err := box.ParseStat(line)
		if err == nil && s.State == 0 {
			t.Errorf("%q: %+v", line, s)
		}
	})
}

func TestDescendantsAreFoundAtAnyDepth(t *testing.T) {
	all := []box.Stat{{Pid: 1, Ppid: 0}, {Pid: 5, Ppid: 4}, {Pid: 4, Ppid: 3}, {Pid: 3, Ppid: 2}, {Pid: 2, Ppid: 1}, {Pid: 9, Ppid: 1}}
	var got []int
	for _, s := range box.Descendants(all, 2) {
		got = append(got, s.Pid)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]int{3, 4, 5}, got); diff != "" {
		t.Error(diff)
	}
}

func TestProbeRefusesWhatItDoesNotKnow(t *testing.T) {
	if _, err := Probe(t.Context(), "nonsense", "", nil); !errors.Is(err, ErrNoContainer) {
		t.Error(err)
	}
	if _, err := Probe(t.Context(), box.KindWalk, "/nonexistent", nil); !errors.Is(err, ErrNoContainer) {
		t.Error(err)
	}
}

// An init in a container reaps what is orphaned, and passes on signals and the supervisor's code.
func TestPID1ReapsAndPassesTheCodeOn(t *testing.T) {
	need.These(t, box.KindPidNS)
	cmd := exec.Command("/proc/self/exe")
	cmd.Args[0] = pid1Role
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWPID, Pdeathsig: unix.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 16)
	if n, err := out.Read(buf); err != nil || string(buf[:n]) != "ready\n" {
		t.Fatalf("%q %v", buf[:n], err)
	}
	// Orphans have gone through it by then; none is left as a zombie.
	deadline := time.Now().Add(patience)
	for zombies := 1; zombies > 0; {
		all, err := box.Processes()
		if err != nil {
			t.Fatal(err)
		}
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
	if err := cmd.Process.Signal(unix.SIGUSR1); err != nil {
		t.Fatal(err)
	}
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
