package box

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// controlled is a folder that looks like a cgroup with these controllers.
func controlled(t *testing.T, dir, controllers string) string {
	t.Helper()
	for name, text := range map[string]string{"cgroup.controllers": controllers, "cgroup.subtree_control": "", "cgroup.procs": ""} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestWhatAMachineHasNoControllerForIsNoBound(t *testing.T) {
	unit := controlled(t, filepath.Join(t.TempDir(), "unit"), "cpu memory\n")
	if err := (Bounds{Memory: 1, CPU: 50}).Lacks(unit); err != nil {
		t.Error(err)
	}
	if err := (Bounds{Tasks: 1}).Lacks(unit); err == nil || !strings.Contains(err.Error(), "has no controller pids") {
		t.Errorf("without the controller: %v", err)
	}
	if err := (Bounds{}).Lacks("/nowhere"); err != nil {
		t.Errorf("without a bound: %v", err)
	}
	root := controlled(t, t.TempDir(), "pids\n") // a supervisor in the root makes a base there
	if err := (Bounds{Tasks: 1}).Lacks(filepath.Join(root, rootBase)); err != nil {
		t.Error(err)
	}
}

func TestTheKernelsCountOfKillsTellsWhetherMemoryWasShort(t *testing.T) {
	for text, want := range map[string]bool{
		"low 0\nhigh 0\nmax 9\noom 1\noom_kill 0\noom_group_kill 0\n": false,
		"low 0\nhigh 0\nmax 9\noom 1\noom_kill 2\noom_group_kill 1\n": true,
		"": false, "oom_kill": false,
	} {
		run := t.TempDir()
		if err := os.WriteFile(filepath.Join(run, "memory.events"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if OutOfMemory(run) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
	if OutOfMemory(t.TempDir()) { // no controller: nothing is known
		t.Error("without the file")
	}
}

// A supervisor that has moved into its lair, and the next image of its process, make trees where they did before.
func TestALairIsNoBase(t *testing.T) {
	const mounts = "30 20 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
	for _, own := range []string{"0::/system.slice/understudy.service\n", "0::/system.slice/understudy.service/" + lair + "\n"} {
		if base, err := baseFrom(own, mounts); err != nil || base != "/sys/fs/cgroup/system.slice/understudy.service" {
			t.Errorf("%s: %s, %v", own, base, err)
		}
	}
}
