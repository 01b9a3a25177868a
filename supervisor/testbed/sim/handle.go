package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"understudy/supervisor"
	"understudy/supervisor/child"

	"understudy/supervisor/guard"
)

// handle is a tree as the supervisor that made it holds it. World.mu guards it.
type handle struct {
	*tree
	guard   *keeper
	entry   *guard.Entry
	killing chan struct{} // held by the one Kill or End that is under way
}

// plant is the tree as its guardians know it.
func (t *handle) plant(release []byte) guard.Plant {
	return guard.Plant{Release: release, Along: t.tree, Of: t, Ref: func() *guard.Ref { return &guard.Ref{Kind: child.KindCgroup, Path: t.id.Name} }}
}

// ID implements supervisor.Tree.
func (t *handle) ID() (json.RawMessage, error) { return json.Marshal(t.id) }

// Start implements supervisor.Tree.
func (t *handle) Start(ctx context.Context, spec child.Spec) (supervisor.Process, error) {
	g := t.guard
	if !g.inc.pass() {
		return nil, errCrashed
	}
	g.w.mu.Lock()
	err := t.entry.MayStart(g.now())
	g.w.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("start in tree %s: %w", t.id.Name, err)
	}
	if slow := g.w.programs.startTakes(t.tree.service); slow > 0 {
		g.w.sleep(context.WithoutCancel(ctx), slow)
	}
	g.inc.trap(beforeFork, nil) // the last look at the lease lies behind, the fork ahead
	p, err := t.spawn(spec.Argv, tokenOf(spec.Env), g.inc.pass())
	if err != nil {
		return nil, err
	}
	g.inc.trap(afterFork, nil)
	return &process{p, g.inc}, nil
}

func (t *handle) spawn(argv []string, token int64, alive bool) (*proc, error) {
	w := t.guard.w
	w.mu.Lock()
	defer w.mu.Unlock()
	t.entry.Started()
	if !alive {
		return nil, errCrashed
	}
	n, there := w.programs.natureOf(t.tree, argv[0])
	if !there {
		return nil, child.ErrNotFound
	}
	p, err := t.fork(argv[0], token, n)
	if err != nil {
		return nil, fmt.Errorf("start in tree %s: %w: %w", t.id.Name, child.ErrLeaseEnded, err)
	}
	p.argv = argv
	return p, nil
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

// Kill implements supervisor.Tree.
func (t *handle) Kill(ctx context.Context) error { return t.kill(ctx, false) }

// End implements supervisor.Tree.
func (t *handle) End(ctx context.Context) error { return t.kill(ctx, true) }

func (t *handle) kill(ctx context.Context, end bool) error {
	g := t.guard
	g.inc.trap(beforeKill, nil)
	if !g.inc.pass() {
		return nil // nobody is there to hear it
	}
	g.w.mu.Lock()
	t.strike()
	g.w.mu.Unlock()
	select {
	case t.killing <- struct{}{}:
		defer func() { <-t.killing }()
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", child.ErrUnproved, context.Cause(ctx))
	}
	g.w.mu.Lock()
	over := t.entry.BeginKill(end)
	g.w.mu.Unlock()
	if over {
		return nil
	}
	defer func() {
		g.w.mu.Lock()
		t.entry.EndKill()
		g.w.mu.Unlock()
	}()
	if err := t.killAll(ctx, end); err != nil || !g.inc.pass() {
		return err
	}
	if end {
		g.w.mu.Lock()
		t.entry.MarkDead()
		if armed, _ := t.entry.Armed(); armed {
			g.watchdog.mayDisarm()
		}
		g.w.mu.Unlock()
	}
	g.inc.trap(afterKill, nil)
	return nil
}

// killAll kills until nothing is left, and nothing is about to be started either.
func (t *handle) killAll(ctx context.Context, end bool) error {
	g := t.guard
	for {
		g.w.mu.Lock()
		unseen, changed := t.entry.StartPending(), g.pair.Questions.Changed()
		g.w.mu.Unlock()
		if err := t.killUntilDead(ctx, end); err != nil {
			return err
		}
		if !g.inc.pass() || !unseen {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%w: a process is being started: %w", child.ErrUnproved, context.Cause(ctx))
		}
	}
}

// Owns implements supervisor.Tree: nothing here says READY=1.
func (t *handle) Owns(int) bool { return false }

// process is a process as the supervisor that started it holds it.
type process struct {
	*proc
	inc *incarnation
}

// Pid implements supervisor.Process.
func (p *process) Pid() int { return p.pid }

// Done implements supervisor.Process.
func (p *process) Done() <-chan struct{} { return p.done }

// Wait implements supervisor.Process.
func (p *process) Wait(ctx context.Context) (child.ExitStatus, error) {
	select {
	case <-p.done:
		return p.status, nil
	case <-ctx.Done():
		return child.ExitStatus{}, context.Cause(ctx)
	}
}

// Kill implements supervisor.Process: it and its offspring.
func (p *process) Kill(ctx context.Context) error {
	if !p.inc.pass() {
		return nil // nobody is there to hear it
	}
	w := p.tree.host.w
	for {
		w.mu.Lock()
		changed, left := p.tree.changed, 0
		for _, other := range p.tree.all() {
			if other == p.proc || other.parent == p.proc {
				other.kill()
				left++
			}
		}
		w.mu.Unlock()
		if left == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", child.ErrUnproved, context.Cause(ctx))
		}
	}
}

// Astray implements supervisor.Process.
func (p *process) Astray() (cgroup string) {
	if p.inc.pass() && p.proc.nature.strays {
		return "/elsewhere"
	}
	return ""
}

// AskRest implements supervisor.Process.
func (p *process) AskRest(syscall.Signal) (left int) {
	if !p.inc.pass() {
		return 0
	}
	w := p.tree.host.w
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, other := range p.tree.all() {
		if other.parent == p.proc {
			other.term()
			left++
		}
	}
	return left
}

// Signal implements supervisor.Process.
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
