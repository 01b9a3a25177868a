package box

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Bounds are limits for all processes of a program together. 0: there is none.
type Bounds struct {
	Memory uint64 // bytes
	CPU    uint64 // percent of one processor
	Tasks  uint64
}

// lair is the cgroup inside a base that takes the processes of the base itself: one with controllers for those inside it may have none.
const lair = "understudy.self"

const cpuPeriod = 100_000 // microseconds, the kernel's default

// files are what is written into a cgroup, by controller.
func (b Bounds) files() map[string][][2]string {
	all := map[string][][2]string{}
	if b.Memory > 0 {
		all["memory"] = [][2]string{{"memory.max", strconv.FormatUint(b.Memory, 10)}, {"memory.oom.group", "1"}}
	}
	if b.CPU > 0 {
		all["cpu"] = [][2]string{{"cpu.max", fmt.Sprint(b.CPU*cpuPeriod/100, " ", cpuPeriod)}}
	}
	if b.Tasks > 0 {
		all["pids"] = [][2]string{{"pids.max", strconv.FormatUint(b.Tasks, 10)}}
	}
	return all
}

// Lacks is why programs below a base cannot have these bounds; nil: they can, as far as is known.
func (b Bounds) Lacks(base string) error {
	if rooted(base) {
		base = filepath.Dir(base)
	}
	for _, controller := range slices.Sorted(maps.Keys(b.files())) {
		if !has(base, "cgroup.controllers", controller) {
			return fmt.Errorf("the cgroup %s has no controller %s, which limits of memory, cpu and tasks need: take them out, "+
				"or run it where cgroup v2 has it (in a unit, with Delegate=yes)", base, controller)
		}
	}
	return nil
}

// LacksHere is Lacks for programs of this supervisor.
func (b Bounds) LacksHere() error {
	base, err := CgroupBase()
	if err != nil {
		return err
	}
	return b.Lacks(base)
}

// Impossible is why no process of this machine can have these bounds, wherever it is; nil: one can, as far as is known.
func (b Bounds) Impossible() error {
	base, err := CgroupBase()
	if err != nil {
		return err
	}
	for up := filepath.Dir(base); has(up, "cgroup.controllers", ""); up = filepath.Dir(up) {
		base = up
	}
	return b.Lacks(base)
}

// Bound limits a run of the tree, before its program begins.
func (l *TreeCgroup) Bound(r *RunCgroup, base string, b Bounds) error {
	if err := b.Lacks(base); err != nil {
		return err
	}
	for controller, files := range b.files() {
		if rooted(base) && !has(base, "cgroup.controllers", controller) {
			if err := enable(filepath.Dir(base), controller); err != nil {
				return err
			}
		}
		for _, dir := range []string{base, l.Path} {
			if err := enable(dir, controller); err != nil {
				return err
			}
		}
		for _, f := range files {
			if err := put(r.Path, f[0], f[1]); err != nil {
				return err
			}
		}
	}
	return nil
}

// OutOfMemory reports whether the kernel has killed a process of a run because memory was short. It does not say so without the controller.
func OutOfMemory(run string) bool {
	if run == "" { // it has no cgroup of its own
		return false
	}
	text, _ := os.ReadFile(filepath.Join(run, "memory.events"))
	_, after, _ := strings.Cut(string(text), "\noom_kill ")
	killed, _, _ := strings.Cut(after, "\n")
	return killed != "" && killed != "0"
}

// rooted reports whether a base was made below the root, which may have processes and controllers.
func rooted(base string) bool { return filepath.Base(base) == rootBase }

// enable has the cgroups inside one have a controller.
func enable(dir, controller string) error {
	if has(dir, "cgroup.subtree_control", controller) {
		return nil
	}
	err := put(dir, "cgroup.subtree_control", "+"+controller)
	for tries := 0; errors.Is(err, unix.EBUSY) && tries < 5; tries++ { // one that is forked meanwhile may be left
		if err := vacate(dir); err != nil {
			return err
		}
		err = put(dir, "cgroup.subtree_control", "+"+controller)
	}
	return err
}

// vacate moves the processes of a cgroup itself into its lair.
func vacate(dir string) error {
	to := filepath.Join(dir, lair)
	if err := os.Mkdir(to, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	pids, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return err
	}
	for _, pid := range strings.Fields(string(pids)) {
		if err := put(to, "cgroup.procs", pid); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}

// has reports whether a cgroup's file has a word; "": whether it is there.
func has(dir, name, word string) bool {
	text, err := os.ReadFile(filepath.Join(dir, name))
	return err == nil && (word == "" || slices.Contains(strings.Fields(string(text)), word))
}

func put(dir, name, text string) error {
	path := filepath.Join(dir, name)
	f, err := os.OpenFile(path, os.O_WRONLY, 0) // the kernel makes these files
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		return fmt.Errorf("write %s into %s: %w", text, path, err)
	}
	return nil
}
