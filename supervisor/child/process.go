package child

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Why a program could not be started, for errors.Is.
var (
	ErrNotFound      = errors.New("program not found")
	ErrNotExecutable = errors.New("program not executable")
	ErrTreeEnded     = errors.New("the tree has ended or is being killed")
)

// Spec is a program to start. Its stdin is /dev/null, and it leads a session of its own.
type Spec struct {
	Argv           []string
	Dir            string
	Env            []string // complete; what is meant for the supervisor alone is taken out of it
	Stdout, Stderr *os.File // default: this process's own
	Credential     *Credential
}

// Credential is who a program runs as, if not as the supervisor.
type Credential struct {
	UID, GID uint32
	Groups   []uint32
}

// program is a Spec on its way to a stub.
type program struct {
	Path       string      `json:"path"`
	Argv       []string    `json:"argv"`
	Dir        string      `json:"dir,omitempty"`
	Env        []string    `json:"env"`
	Credential *Credential `json:"credential,omitempty"`
}

// ExitStatus is how a program ended: with a code, or by a signal.
type ExitStatus struct {
	Code   int // 128+N when signal N ended it
	Signal syscall.Signal
	Core   bool
	// Unknown: it ended, but nobody was there to see how, as when the stub above it was killed.
	Unknown bool
}

// Process is a started program: the first process of its tree.
type Process struct {
	pid    int
	done   chan struct{}
	status ExitStatus // written before done is closed
	signal func(syscall.Signal) error
}

// Pid is the process id in this process's PID namespace.
func (p *Process) Pid() int { return p.pid }

// Done is closed when the program has ended; what it forked may still run.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the program's end. Its error is only ever the context's.
func (p *Process) Wait(ctx context.Context) (ExitStatus, error) {
	select {
	case <-p.done:
		return p.status, nil
	default:
	}
	select {
	case <-p.done:
		return p.status, nil
	case <-ctx.Done():
		return ExitStatus{}, context.Cause(ctx)
	}
}

// Signal sends a signal to the program itself. os.ErrProcessDone: it has ended.
func (p *Process) Signal(sig syscall.Signal) error {
	select {
	case <-p.done:
		return os.ErrProcessDone
	default:
		return p.signal(sig)
	}
}

// Start starts a program in the tree. ErrLeaseEnded or ErrNoLease: it must not run now. ErrNotFound, ErrNotExecutable:
// it cannot.
func (t *Tree) Start(ctx context.Context, spec Spec) (*Process, error) {
	p, err := t.start(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("start in tree %s: %w", t.id.Name, err)
	}
	return p, nil
}

func (t *Tree) start(ctx context.Context, spec Spec) (*Process, error) {
	prog, err := spec.resolve()
	if err != nil {
		return nil, err
	}
	if err := t.mayStart(); err != nil {
		return nil, err
	}
	defer t.startDone()
	if t.leaf != nil {
		return t.startInLeaf(ctx, spec, prog)
	}
	return t.startStub(ctx, spec, prog)
}

// mayStart is the last look at the lease. What makes it safe that time passes between it and the fork is the container:
// a guardian that ends the lease takes it away, and the fork fails.
func (t *Tree) mayStart() error {
	g := t.guard
	g.mu.Lock()
	err := g.live(t.epoch)
	if err == nil && t.epoch.deadline == 0 {
		err = ErrNoLease
	}
	g.mu.Unlock()
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.killing || t.ended {
		return ErrTreeEnded
	}
	if t.leaf != nil && t.run == nil {
		t.runs++
		if t.run, err = t.leaf.newRun(t.runs); err != nil {
			return err
		}
	}
	t.starting++ // which keeps the run open
	return nil
}

func (t *Tree) startDone() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.starting--
	close(t.changed)
	t.changed = make(chan struct{})
}

// onSpawner runs f on the spawning thread, and waits for it.
func (g *Guard) onSpawner(ctx context.Context, f func()) error {
	done := make(chan struct{})
	select {
	case g.errands <- func() { defer close(done); f() }:
		<-done
		return nil
	case <-g.stopped:
		return ErrStopped
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t *Tree) startInLeaf(ctx context.Context, spec Spec, prog *program) (*Process, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	t.mu.Lock()
	in := t.run
	t.mu.Unlock()
	attr := prog.attr(null, spec.stdout(), spec.stderr())
	attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, in.dir // P3: a removed cgroup cannot be forked into
	var process *os.Process
	var started error
	err = t.guard.onSpawner(ctx, func() {
		if t.guard.beforeSpawn != nil {
			t.guard.beforeSpawn()
		}
		process, started = os.StartProcess(prog.Path, prog.Argv, attr)
	})
	if err != nil {
		return nil, err
	}
	if started != nil {
		if in.removed() {
			return nil, fmt.Errorf("%w: %w", ErrLeaseEnded, started)
		}
		return nil, startFault(started)
	}
	p := &Process{pid: process.Pid, done: make(chan struct{})}
	p.signal = func(sig syscall.Signal) error { return process.Signal(sig) }
	t.guard.tasks.Go(func() {
		state, err := process.Wait()
		p.status = ExitStatus{Code: -1, Unknown: true}
		if err == nil {
			p.status = statusOf(state.Sys().(syscall.WaitStatus))
		}
		close(p.done)
	})
	return p, nil
}

// attr is how a program is started: by the supervisor in a cgroup, by the stub elsewhere.
func (prog *program) attr(files ...*os.File) *os.ProcAttr {
	sys := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL} // P4: a second line; the guardians are the first
	if c := prog.Credential; c != nil {
		sys.Credential = &syscall.Credential{Uid: c.UID, Gid: c.GID, Groups: c.Groups}
	}
	return &os.ProcAttr{Dir: prog.Dir, Env: prog.Env, Files: files, Sys: sys}
}

func statusOf(ws syscall.WaitStatus) ExitStatus {
	if ws.Signaled() {
		return ExitStatus{Code: 128 + int(ws.Signal()), Signal: ws.Signal(), Core: ws.CoreDump()}
	}
	return ExitStatus{Code: ws.ExitStatus()}
}

func (s Spec) stdout() *os.File {
	if s.Stdout != nil {
		return s.Stdout
	}
	return os.Stdout
}

func (s Spec) stderr() *os.File {
	if s.Stderr != nil {
		return s.Stderr
	}
	return os.Stderr
}

// resolve finds the program as a shell would: along the PATH of the environment it is going to have.
func (s Spec) resolve() (*program, error) {
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return nil, fmt.Errorf("%w: no command", ErrNotFound)
	}
	prog := &program{Path: s.Argv[0], Argv: s.Argv, Dir: s.Dir, Env: cleanEnv(s.Env), Credential: s.Credential}
	if strings.Contains(prog.Path, "/") {
		at := prog.Path
		if !filepath.IsAbs(at) {
			at = filepath.Join(s.Dir, at)
		}
		return prog, executable(at)
	}
	path := os.Getenv("PATH")
	for _, entry := range prog.Env {
		if value, ok := strings.CutPrefix(entry, "PATH="); ok {
			path = value
		}
	}
	fault := fmt.Errorf("%w: %s is not in PATH", ErrNotFound, prog.Path)
	for _, dir := range filepath.SplitList(path) {
		at := filepath.Join(dir, s.Argv[0])
		err := executable(at)
		if err == nil {
			prog.Path = at
			return prog, nil
		}
		if errors.Is(err, ErrNotExecutable) {
			fault = err
		}
	}
	return nil, fault
}

func executable(at string) error {
	info, err := os.Stat(at)
	if err == nil && info.IsDir() {
		return fmt.Errorf("%w: %s is a directory", ErrNotExecutable, at)
	}
	if err == nil && info.Mode()&0o111 == 0 {
		return fmt.Errorf("%w: %s", ErrNotExecutable, at)
	}
	return startFault(err)
}

// startFault gives the kernel's reason for not starting a program a name.
func startFault(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, unix.ENOEXEC), errors.Is(err, unix.EISDIR), errors.Is(err, unix.ELIBBAD):
		return fmt.Errorf("%w: %w", ErrNotExecutable, err)
	}
	return err
}
