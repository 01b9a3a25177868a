package child

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"understudy/supervisor/guard"
)

// Tree is a service's programs and all processes that they ever fork. It lives under one epoch; both guardians know it.
type Tree struct {
	guard *Guard
	entry *guard.Entry // guarded by guardians.mu
	id    TreeID
	alive

	killing chan struct{} // held by the one Kill or End that is under way
}

// NewTree makes the container for a program and returns when both guardians know how to kill it. A guardian gives release to
// the session closer once this tree is proved dead, if this process cannot release it itself. The name is the service's; a
// suffix after a slash says what else the tree is for.
// ErrLeaseEnded: the epoch is over.
func (g *Guard) NewTree(ctx context.Context, number uint64, name string, release []byte) (*Tree, error) {
	t, err := g.newTree(ctx, number, name, release)
	if err != nil {
		return nil, fmt.Errorf("new tree %s in epoch %d: %w", name, number, err)
	}
	return t, nil
}

func (g *Guard) newTree(ctx context.Context, number uint64, name string, release []byte) (*Tree, error) {
	if len(release) > maxPacket/2 {
		return nil, errPacketTooLarge
	}
	t := &Tree{guard: g, killing: make(chan struct{}, 1)}
	if g.cfg.Container.Kind == KindCgroup {
		service, _, _ := strings.Cut(name, "/")
		err := making.do(func() (err error) {
			t.leaf, err = makeLeaf(g.cfg.Container.Base, g.cfg.Name+"."+strings.ReplaceAll(name, "/", "."), tagOf(g.cfg.Root, service))
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	err := making.do(func() (err error) {
		t.id, err = t.identify(name)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, t.discard())
	}
	g.guardians.mu.Lock()
	var seq uint64
	t.entry, seq, err = g.guardians.pair.Ledger.Plant(Now(), number, t.plant(slices.Clone(release)))
	g.guardians.unlock()
	if err != nil {
		return nil, errors.Join(err, t.discard())
	}
	if err := g.guardians.answered(ctx, seq); err != nil {
		return nil, errors.Join(err, t.End(context.WithoutCancel(ctx)))
	}
	return t, nil
}

// discard removes the container of a tree that no guardian knows yet.
func (t *Tree) discard() error {
	if t.leaf == nil {
		return nil
	}
	err := t.leaf.remove()
	t.leaf.close()
	return err
}

// plant describes the tree to its guardians.
func (t *Tree) plant(release []byte) guard.Plant {
	return guard.Plant{Release: release, Mark: t.id.Mark, Of: t, Ref: func() *guard.Ref {
		if t.leaf == nil || t.leaf.removed() { // P3: otherwise a new guardian would not even hold processes that have left it
			return nil
		}
		return &guard.Ref{Kind: KindCgroup, Path: t.leaf.path}
	}}
}

// ID names the tree on this machine in this boot: enough for any process to find it, and to kill it.
func (t *Tree) ID() TreeID { return t.id }

// Kill kills the whole tree. nil says that its death is proved; then the tree can be used again, as long as the epoch is not
// over.
func (t *Tree) Kill(ctx context.Context) error {
	if err := t.kill(ctx, false); err != nil {
		return fmt.Errorf("kill tree %s: %w", t.id.Name, err)
	}
	return nil
}

// End kills the tree and removes its container. nil says that its death is proved, and that no fork can come late.
func (t *Tree) End(ctx context.Context) error {
	if err := t.kill(ctx, true); err != nil {
		return fmt.Errorf("end tree %s: %w", t.id.Name, err)
	}
	return nil
}

func (t *Tree) kill(ctx context.Context, end bool) error {
	t.strike() // P2: even if another goroutine is killing, or the context has ended
	select {
	case t.killing <- struct{}{}:
		defer func() { <-t.killing }()
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrUnproved, context.Cause(ctx))
	}
	g := t.guard
	g.guardians.mu.Lock()
	over := t.entry.BeginKill(end) // no fork begins
	g.guardians.mu.Unlock()
	if over {
		return nil
	}
	defer func() {
		g.guardians.mu.Lock()
		t.entry.EndKill()
		g.guardians.mu.Unlock()
	}()
	for {
		g.guardians.mu.Lock()
		unseen, changed := t.entry.StartPending(), g.guardians.pair.Questions.Changed()
		g.guardians.mu.Unlock()
		parts := t.targets()
		var errs []error
		for _, p := range parts { // before the leaf, which contains them
			errs = append(errs, killUntilDead(ctx, unsealed(p.body, unseen), end || p.stub == nil))
		}
		t.looked(parts)
		if t.leaf != nil { // P2: remove its cgroup only when no process forked into it lives: others find the tree by it
			all := errors.Join(errs...) == nil
			errs = append(errs, killUntilDead(ctx, unsealed(t.leaf, unseen), end && all))
		}
		if err := errors.Join(errs...); err != nil {
			return err
		}
		if !unseen {
			break
		}
		select { // the next round kills a process that is being started
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%w: a process is being started: %w", ErrUnproved, context.Cause(ctx))
		}
	}
	return t.markDead(end)
}

// unsealed is a body that is not frozen while this process forks into it: the fork would wait for a child that does not run, and block a
// thread that the garbage collector, and so all others, wait for. The kill waits for that fork, and kills its child, in any case.
func unsealed(b body, starting bool) body {
	if starting {
		return ours{b}
	}
	return b
}

type ours struct{ body }

func (ours) seal() {}

// markDead tells the guardians about a proved death.
func (t *Tree) markDead(end bool) (err error) {
	g := t.guard
	g.guardians.mu.Lock()
	defer g.guardians.unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if end {
		t.closed = true
		t.entry.MarkDead()
		if armed, _ := t.entry.Armed(); armed {
			g.watchdog.mayDisarm()
		}
	}
	for _, p := range slices.Clone(t.parts) {
		err = errors.Join(err, p.body.remove())
		t.shed(p)
	}
	if end && t.leaf != nil {
		t.leaf.close()
	}
	return err
}
