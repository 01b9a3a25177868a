package child

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child/box"
)

// askedLeftovers are the processes left behind by a start's first one that were asked to end.
type askedLeftovers struct {
	mu    sync.Mutex // guards asked
	asked map[processID]bool
}

// processID names a process for good, even if another one has its pid later.
type processID struct {
	pid   int
	start uint64
}

// AskLeftovers asks the processes that a start's first one left behind to end. Each gets the signal once, with SIGCONT, because a stopped
// one would not act on it. It returns how many processes are left, those asked before included. It proves no death.
func (p *Process) AskLeftovers(sig syscall.Signal) (left int) {
	p.leftovers.mu.Lock()
	defer p.leftovers.mu.Unlock()
	for _, s := range p.part.remaining() {
		if s.Pid == p.pid || !s.Alive() {
			continue
		}
		left++
		id := processID{s.Pid, s.Start}
		if p.leftovers.asked[id] {
			continue
		}
		held, err := box.HoldProcess(s.Pid, s.Start)
		if err != nil || held == nil {
			continue // it is gone, or is asked at the next look
		}
		if !p.part.has(s.Pid) { // its pid belonged to another process when it was listed
			_ = held.Close()
			continue
		}
		if p.leftovers.asked == nil {
			p.leftovers.asked = map[processID]bool{}
		}
		p.leftovers.asked[id] = true
		_ = box.SignalHeld(held, sig) // a process that cannot be asked is killed in the end
		_ = box.SignalHeld(held, unix.SIGCONT)
		_ = held.Close()
	}
	return left
}

// remaining lists the processes of a start that one look finds: good for asking, not for proof.
func (p *part) remaining() (found []box.Stat) {
	p.tree.mu.Lock()
	over := p.over
	p.tree.mu.Unlock()
	if over {
		return nil
	}
	if p.stub == nil {
		return cgroupProcesses(p.path, 0)
	}
	all, err := box.Processes()
	if err != nil || !slices.ContainsFunc(all, func(s box.Stat) bool { return s.Pid == p.stub.Pid && s.Start == p.stub.Start }) {
		return nil
	}
	return box.Descendants(all, p.stub.Pid)
}

// has reports whether a held process belongs to a start.
func (p *part) has(pid int) bool {
	if p.stub != nil {
		return true // a walk saw it below the stub, by its start
	}
	at, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	return err == nil && box.InRun(string(at), []string{p.path})
}

// cgroupProcesses lists the processes of a cgroup and of those inside it.
func cgroupProcesses(path string, depth int) (found []box.Stat) {
	pids, err := box.Members(path)
	if err != nil || depth > 64 {
		return nil
	}
	for _, pid := range pids {
		if s, err := box.StatOf(pid); err == nil {
			found = append(found, s)
		}
	}
	entries, _ := os.ReadDir(path)
	for _, e := range entries {
		if e.IsDir() {
			found = append(found, cgroupProcesses(filepath.Join(path, e.Name()), depth+1)...)
		}
	}
	return found
}
