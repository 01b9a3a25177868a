package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"understudy/supervisor/child"
	"understudy/supervisor/child/box"
	"understudy/supervisor/child/inside"
	"understudy/supervisor/guard"
	machine "understudy/supervisor/host"
)

// handle is a tree as the supervisor that made it holds it. World.mu guards it.
type handle struct {
	*tree
	guard   *keeper
	guarded *guard.Tree
	seen    map[*proc]bool // by the newest look, in its cgroup
	held    []*proc        // that looks have found in others
}

// spec is the tree as its guardians know it.
func (t *handle) spec(release []byte) guard.TreeSpec {
	return guard.TreeSpec{Release: release, Along: t.tree, Of: t, Ref: func() *guard.Ref { return &guard.Ref{Kind: box.KindCgroup, Path: t.id.Name} }}
}

// ID implements host.Tree.
func (t *handle) ID() (json.RawMessage, error) { return json.Marshal(t.id) }

// Start implements host.Tree.
func (t *handle) Start(ctx context.Context, spec child.Spec) (machine.Process, error) {
	g := t.guard
	if !g.inc.pass() {
		return nil, errCrashed
	}
	g.w.mu.Lock()
	err := t.guarded.MayStart(g.now())
	g.w.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("start in tree %s: %w", t.id.Name, err)
	}
	if slow := g.w.programs.startTakes(t.tree.service); slow > 0 {
		g.w.sleep(context.WithoutCancel(ctx), slow)
	}
	g.inc.trap(beforeFork, nil) // the last look at the lease lies behind, the fork ahead
	if !t.born(g.inc.pass, func() bool { return g.w.sleep(ctx, 10*time.Millisecond) }) {
		g.w.mu.Lock()
		t.guarded.Started()
		g.w.mu.Unlock()
		return nil, fmt.Errorf("start in tree %s: %w", t.id.Name, context.Cause(ctx))
	}
	p, said, err := t.spawn(spec, g.inc.pass())
	if err != nil {
		return nil, err
	}
	write(spec.Stdout, said)
	g.inc.trap(afterFork, nil)
	return &process{p, g.inc}, nil
}

func (t *handle) spawn(spec child.Spec, alive bool) (p *proc, said string, err error) {
	w := t.guard.w
	w.mu.Lock()
	defer w.mu.Unlock()
	t.guarded.Started()
	if !alive {
		return nil, "", errCrashed
	}
	n, there := w.programs.natureOf(t.tree, spec.Argv[0])
	if !there {
		return nil, "", inside.ErrNotFound
	}
	t.standsBy(spec)
	if w.plan.copied() {
		said, n.code = w.copies.answer(t.tree, spec, n.code)
	}
	p, err = t.fork(spec.Argv[0], tokenOf(spec.Env), n)
	if err != nil {
		return nil, "", fmt.Errorf("start in tree %s: %w: %w", t.id.Name, child.ErrLeaseEnded, err)
	}
	if p.argv = spec.Argv; w.plan.copied() {
		w.copies.does(t.tree, p, spec)
	}
	return p, said, nil
}

func tokenOf(env []string) int64 {
	for _, entry := range env {
		if v, ok := strings.CutPrefix(entry, "UNDERSTUDY_TOKEN="); ok {
			token, _ := strconv.ParseInt(v, 10, 64)
			return token
		}
	}
	return 0
}

// Move implements host.Tree.
func (t *handle) Move(ctx context.Context, number uint64, release []byte) error {
	g := t.guard
	if !g.inc.pass() {
		return errCrashed
	}
	g.w.mu.Lock()
	seq, err := t.guarded.Move(g.now(), number, release)
	if err == nil {
		t.joins(number)
	}
	g.changed()
	g.w.mu.Unlock()
	g.inc.waylay(t.tree.service, false)
	if err == nil {
		err = g.answered(ctx, seq)
	}
	if err == nil {
		g.watchdog.mayDisarm()
	}
	return err
}

// Kill implements host.Tree.
func (t *handle) Kill(ctx context.Context) error { return t.kill(ctx, false) }

// End implements host.Tree.
func (t *handle) End(ctx context.Context) error { return t.kill(ctx, true) }

func (t *handle) kill(ctx context.Context, end bool) error {
	g := t.guard
	g.inc.trap(beforeKill, nil)
	if !g.inc.pass() {
		return nil // nobody is there to hear it
	}
	if end && g.w.plan.Replicated {
		g.w.copies.ends(t)
	}
	err := t.guarded.Kill(ctx, killHands{t}, end)
	if err == nil && g.inc.pass() {
		g.inc.trap(afterKill, nil)
	}
	return err
}

// Owns implements host.Tree: nothing here says READY=1.
func (t *handle) Owns(int) bool { return false }

// Strays implements host.Tree.
func (t *handle) Strays() (all []child.Stray, err error) {
	if !t.guard.inc.pass() {
		return nil, errCrashed
	}
	w := t.guard.w
	w.mu.Lock()
	defer w.mu.Unlock()
	return t.look(), nil
}

// process is a process as the supervisor that started it holds it.
type process struct {
	*proc
	inc *incarnation
}

// Pid implements host.Process.
func (p *process) Pid() int { return p.pid }

// Done implements host.Process.
func (p *process) Done() <-chan struct{} { return p.done }

// Wait implements host.Process.
func (p *process) Wait(ctx context.Context) (child.ExitStatus, error) {
	select {
	case <-p.done:
		return p.status, nil
	case <-ctx.Done():
		return child.ExitStatus{}, context.Cause(ctx)
	}
}

// Kill implements host.Process: it and its offspring.
func (p *process) Kill(ctx context.Context) error {
	return guard.KillUntilDead(ctx, &awaited{of: p.tree, by: p.inc.gate, box: start{p.proc}}, true)
}

// AskLeftovers implements host.Process.
func (p *process) AskLeftovers(syscall.Signal) (left int) {
	if !p.inc.pass() {
		return 0
	}
	w := p.tree.host.w
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, other := range p.tree.all() {
		if other.parent == p.proc && !other.moved {
			other.term()
			left++
		}
	}
	return left
}

// Signal implements host.Process.
func (p *process) Signal(sig syscall.Signal) error {
	if !p.inc.pass() {
		return errCrashed
	}
	w := p.tree.host.w
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case p.dead:
		return os.ErrProcessDone
	case sig == syscall.SIGKILL:
		p.kill()
	case sig == reloadSignal: // it is only told something
	default:
		p.term()
	}
	return nil
}
