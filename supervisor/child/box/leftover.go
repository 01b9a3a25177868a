package box

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"
)

// Leftover is a process of a tree that cannot be proved dead, as /proc shows it.
type Leftover struct {
	Tree    string // its cgroup's name, or the tree's
	Pid     int    // 0: none is seen
	Start   uint64 // with the pid it names the process for good; 0: unknown
	Program string
	State   string // the kernel's word, as in "t (tracing stop)"
	Tracer  int    // its tracer's pid; 0: none
	Named   bool   // it belongs to the tree in question, not to another one of the service
}

// String says which process it is, and in which state.
func (l Leftover) String() string {
	if l.Pid == 0 {
		return fmt.Sprintf("no process of %s is seen, but it is not proved dead", l.Tree)
	}
	traced := ""
	if l.Tracer != 0 {
		traced = fmt.Sprintf(", traced by pid %d", l.Tracer)
	}
	return fmt.Sprintf("pid %d (%s), state %s%s", l.Pid, l.Program, l.State, traced)
}

// AliveError names live processes of a tree whose death was ordered.
type AliveError struct {
	Leftover
	Err error
}

// Error implements error.
func (e *AliveError) Error() string { return fmt.Sprintf("%v: %v", e.Err, e.Leftover) }

// Unwrap is for errors.Is.
func (e *AliveError) Unwrap() error { return e.Err }

// Unproved adds live processes of the tree to an unproved death.
func Unproved(id TreeID, err error) error {
	if !errors.Is(err, ErrUnproved) || errors.Is(err, ErrNotSeen) {
		return err
	}
	return &AliveError{id.Leftover(), err}
}

// Leftovers are the processes that previous supervisors have left on this machine.
type Leftovers struct {
	Base    Container // where to look for them
	root    string    // as in GuardConfig
	log     hclog.Logger
	stopped <-chan struct{}

	mu   sync.Mutex       // guards left
	left map[string]noted // of trees that breadcrumbs name, by their names
}

// NewLeftovers looks in a container, for the services of the cluster with that root, until stopped is closed.
func NewLeftovers(base Container, root string, log hclog.Logger, stopped <-chan struct{}) *Leftovers {
	return &Leftovers{Base: base, root: root, log: log, stopped: stopped, left: make(map[string]noted)}
}

// End is Guard's Leftover.
func (l *Leftovers) End(ctx context.Context, service string, id TreeID) *Leftover {
	if id.orphaned() {
		err := KillByID(ctx, id)
		if err != nil && !errors.Is(err, ErrNotSeen) && !errors.Is(err, ErrElsewhere) { // P2: a tree in an unknown state is not dead
			left := id.Leftover()
			left.Named = true
			l.note(id, left)
			return &left
		}
	}
	if l.Base.Kind != KindCgroup {
		return nil // only a breadcrumb names it
	}
	var all []Orphan
	err := Making.Do(func() (err error) {
		all, err = orphans(l.Base.Base)
		return err
	})
	if err != nil {
		l.log.Warn("cannot look for processes that earlier supervisors left", "error", err)
		return &Leftover{Tree: "an earlier supervisor's"}
	}
	all = slices.DeleteFunc(all, func(o Orphan) bool { return !o.concerns(l.root, service) })
	for _, o := range EndAll(ctx, all, hclog.NewNullLogger()) {
		left := o.Leftover()
		return &left
	}
	return nil
}

// noted is a leftover of a tree that a breadcrumb named.
type noted struct {
	id TreeID
	Leftover
}

// note remembers a leftover of a tree that a breadcrumb names: without cgroups, nothing else shows it.
func (l *Leftovers) note(id TreeID, left Leftover) {
	if id.Kind == KindCgroup {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left[id.Name+"/"+id.Mark] = noted{id, left}
}

// StillLeft looks again at all noted trees, and returns one that is not known to be dead.
func (l *Leftovers) StillLeft() (Leftover, bool) {
	l.mu.Lock()
	all := maps.Clone(l.left)
	l.mu.Unlock()
	for name, n := range all {
		if dead, err := ProveDead(n.id); !dead && !errors.Is(err, ErrNotSeen) {
			return n.Leftover, true
		}
		l.mu.Lock()
		delete(l.left, name)
		l.mu.Unlock()
	}
	return Leftover{}, false
}

// ErrLeftover says that the watchdog was not touched: a previous supervisor may have armed it for its leftovers, and opening and closing
// the device would disarm it.
var ErrLeftover = errors.New("processes that an earlier supervisor left on this machine cannot be killed")

// KeepSweeping kills the leftovers of earlier supervisors, of all services, until none is left or the guard has stopped.
func (l *Leftovers) KeepSweeping() {
	if l.Base.Kind != KindCgroup {
		return
	}
	told := ""
	for wait := time.Second; ; wait = min(2*wait, sweepAgain) {
		ctx, cancel := context.WithTimeout(context.Background(), SweepLimit)
		left, err := Sweep(ctx, l.Base.Base, hclog.NewNullLogger())
		cancel()
		if err == nil && len(left) == 0 {
			if told != "" {
				l.log.Info("all processes that earlier supervisors left are dead now")
			}
			return
		}
		var words []string
		for _, o := range left {
			words = append(words, o.Leftover().String())
		}
		if now := strings.Join(words, "; "); now != told {
			told = now
			l.log.Error("processes that an earlier supervisor left cannot be killed, still trying", "left", now, "error", err)
		}
		again := time.NewTimer(wait)
		select {
		case <-again.C:
		case <-l.stopped:
			again.Stop()
			return
		}
	}
}

// SweepLimit is the time for one sweep.
const SweepLimit = time.Second

const sweepAgain = time.Minute

// orphaned reports whether the tree's supervisor is gone, and this process can see the tree.
func (id TreeID) orphaned() bool {
	if id.here() != nil {
		return false
	}
	alive, err := id.supervised()
	return err == nil && !alive
}

// Leftover looks for live processes of the tree.
func (id TreeID) Leftover() Leftover {
	if id.Kind == KindCgroup {
		return Orphan{Path: id.Path}.Leftover()
	}
	l := Leftover{Tree: id.Name}
	found, _ := id.Stubs()
	all, _ := Processes()
	for _, stub := range found {
		for _, s := range append(Descendants(all, stub.Pid), stub) {
			if s.Alive() && l.Look(s.Pid) {
				return l
			}
		}
	}
	return l
}

// Leftover looks for live processes of the orphan.
func (o Orphan) Leftover() Leftover {
	l := Leftover{Tree: filepath.Base(o.Path)}
	base, _, err := OpenBase(o.Path)
	if err != nil {
		return l
	}
	defer unix.Close(base)
	dir, err := cgroupIn(base, o.Path)
	if err != nil {
		return l
	}
	in := closedTreeCgroup(o.Path)
	in.hold(dir)
	defer in.Close()
	itself := os.DirFS(pathOf(dir))
	_ = fs.WalkDir(itself, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return nil // do not show a process that cannot be read
		}
		text, _ := fs.ReadFile(itself, filepath.Join(path, "cgroup.procs"))
		for word := range strings.FieldsSeq(string(text)) {
			pid, err := strconv.Atoi(word)
			if err != nil {
				continue
			}
			found := l.Look(pid)
			if found {
				return fs.SkipAll
			}
		}
		return nil
	})
	if l.Pid == 0 { // a process that was started there may have left it
		_ = in.firsts(func(one *First) error {
			l.Look(one.Pid)
			return nil
		})
	}
	return l
}

// Look reads a process's state from /proc, or that of a traced thread, if there is one.
func (l *Leftover) Look(pid int) bool {
	s, _ := StatOf(pid)
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	tasks, _ := filepath.Glob(filepath.Join(dir, "task/*/status"))
	for _, file := range append([]string{filepath.Join(dir, "status")}, tasks...) {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		tracer, _ := strconv.Atoi(StatusField(text, "TracerPid"))
		// A thread traces: an operator looks for its process.
		if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", tracer)); err == nil {
			tracer, _ = strconv.Atoi(StatusField(text, "Tgid"))
		}
		if l.Pid == 0 || tracer != 0 || strings.HasPrefix(l.State, "Z") { // its main thread may have ended before the others
			l.Pid, l.Start, l.Program, l.State, l.Tracer = pid, s.Start, StatusField(text, "Name"), StatusField(text, "State"), tracer
		}
		if tracer != 0 {
			break
		}
	}
	return l.Pid != 0
}

// StatusField is one field of a /proc/PID/status.
func StatusField(status []byte, name string) string {
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
