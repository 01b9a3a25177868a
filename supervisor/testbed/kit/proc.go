package kit

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"understudy/supervisor/testbed/zktest"
)

// Children returns the pids of a process's children.
func Children(pid int) []int {
	var all []int
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for _, word := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(word); err == nil {
				all = append(all, n)
			}
		}
	}
	return all
}

// Parent returns the pid of a process's parent, if the process is still there.
func Parent(pid int) (parent int, there bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	_, after, _ := bytes.Cut(text, []byte(") "))
	_, err = fmt.Sscanf(string(after), "%1s %d", new(string), &parent)
	return parent, err == nil
}

// born tells when a process began, in the kernel's own ticks.
func born(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	const startTime = 22 - 3 // see proc(5); what is cut off are two fields
	_, after, _ := bytes.Cut(text, []byte(") "))
	if fields := strings.Fields(string(after)); len(fields) > startTime {
		return fields[startTime]
	}
	return ""
}

// CommandLine returns a process's arguments, divided by blanks.
func CommandLine(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(bytes.ReplaceAll(text, []byte{0}, []byte{' '})))
}

// Alive tells whether a process exists and is no zombie.
func Alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, ok := bytes.Cut(text, []byte(") "))
	return ok && after[0] != 'Z' && after[0] != 'X'
}

// Signal sends one signal to several processes, as close to at once as one sender can. After a SIGSTOP all their threads stand
// still.
func Signal(sig syscall.Signal, pids ...int) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, sig) // what is gone already needs none
	}
	if sig != syscall.SIGSTOP {
		return
	}
	for given := time.Now().Add(Soon); slices.ContainsFunc(pids, zktest.Moving) && time.Now().Before(given); {
		runtime.Gosched()
	}
}

// KillAtOnce kills several processes so that none of them can answer to another's death.
func KillAtOnce(pids ...int) {
	Signal(syscall.SIGSTOP, pids...)
	Signal(syscall.SIGKILL, pids...)
}

// Processes are the pids of all programs of a name that work in a directory.
func Processes(name, dir string) []int {
	var pids []int
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		if to, err := os.Readlink(link); err != nil || to != dir {
			continue
		}
		var pid int
		if _, err := fmt.Sscanf(link, "/proc/%d/", &pid); err != nil {
			continue
		}
		comm, _ := os.ReadFile(filepath.Join(filepath.Dir(link), "comm")) // it may be gone
		if strings.HasPrefix(string(comm), name) && Alive(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// PSS is the proportional share of memory that processes have together, in bytes, and how much of it are pages of files, which the kernel
// can drop: code.
func PSS(pids ...int) (all, files int64) {
	for _, pid := range pids {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid)) // it may be gone
		for line := range strings.Lines(string(text)) {
			words := strings.Fields(line)
			if len(words) < 2 {
				continue
			}
			switch kib, _ := strconv.ParseInt(words[1], 10, 64); words[0] {
			case "Pss:":
				all += kib << 10
			case "Pss_File:":
				files += kib << 10
			}
		}
	}
	return all, files
}

// CPU is the time that a process has spent running so far, in nanoseconds, as the scheduler counts it.
func CPU(pid int) int64 {
	var total int64
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if words := strings.Fields(string(text)); len(words) > 0 {
			n, _ := strconv.ParseInt(words[0], 10, 64)
			total += n
		}
	}
	return total
}
