package box

import (
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/must"
	"understudy/supervisor/testbed/stuck"
)

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
		got, err := baseFrom(c.own, c.mounts)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q: %q, %v", c.own, got, err)
		}
	}
}

func FuzzStatLine(f *testing.F) {
	own, err := os.ReadFile("/proc/self/stat")
	must.OK(f, err)
	f.Add(string(own))
	f.Add("1 (a) b) (c) Z 0 1 1 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 5 0")
	f.Fuzz(func(t *testing.T, line string) {
		s, err := ParseStat(line)
		if err == nil && s.State == 0 {
			t.Errorf("%q: %+v", line, s)
		}
	})
}

func TestDescendantsAreFoundAtAnyDepth(t *testing.T) {
	all := []Stat{
		{Pid: 1, Ppid: 0}, {Pid: 5, Ppid: 4, Start: 8}, {Pid: 4, Ppid: 3, Start: 7}, {Pid: 3, Ppid: 2, Start: 7}, {Pid: 2, Ppid: 1, Start: 7},
		{Pid: 6, Ppid: 4, Start: 6}, // its parent's pid is another's by now
		{Pid: 9, Ppid: 1}, {Pid: 10, Ppid: 9},
	}
	var got []int
	for _, s := range Descendants(all, 2, 9) {
		got = append(got, s.Pid)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]int{3, 4, 5, 10}, got); diff != "" {
		t.Error(diff)
	}
}

func TestAMemberOfARunIsKnownByItsCgroup(t *testing.T) {
	runs := []string{"/sys/fs/cgroup/x/leaf/run-1"}
	for at, in := range map[string]bool{
		"0::/x/leaf/run-1\n": true, "1:name=systemd:/\n0::/../leaf/run-1/its/own\n": true,
		"0::/x/leaf-2/run-1\n": false, "0::/x/leaf/run-12\n": false, "0::/x/leaf\n": false, "1:name=systemd:/leaf/run-1\n": false,
	} {
		if InRun(at, runs) != in {
			t.Errorf("%q is in the run: %v", at, !in)
		}
	}
	if InRun("0::/x/leaf/run-1\n", nil) {
		t.Error("a start that is over has processes")
	}
}

func TestAThreadThatNoSignalEndsIsSeen(t *testing.T) {
	need.These(t, "root")
	r, w, err := os.Pipe()
	must.OK(t, err)
	free := stuck.Pipe(t, w)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = r.Close()
	}()
	for limit := time.Now().Add(20 * time.Second); !Hangs(); runtime.Gosched() {
		if time.Now().After(limit) {
			t.Fatal("it is not seen")
		}
	}
	free()
	<-ended
	_ = w.Close()
}
