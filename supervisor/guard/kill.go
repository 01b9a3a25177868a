package guard

import (
	"context"
	"errors"
	"fmt"
)

// ErrUnproved says that a death was ordered but not proved. It never means dead.
var ErrUnproved = errors.New("death not proved")

// Killable is a process or container that can be killed whole.
type Killable interface {
	// KillNow orders the death of everything in it. It does not wait.
	KillNow() error
	// KillHarder kills processes that repeated strikes do not end. It does not wait, and each call does a bounded part of the work.
	KillHarder() error
	// Seal keeps late processes from running, as far as possible, while Remove cannot work yet.
	Seal()
	// Dead looks, without waiting. Only (true, nil) is proof, and it stays true once the container is removed.
	Dead() (bool, error)
	// Remove removes the container, so that a late fork fails. It fails while a process lives in it.
	Remove() error
}

// Awaited is a Killable whose death somebody waits for.
type Awaited interface {
	Killable
	// Wait waits for news of the death, and not for long.
	Wait(ctx context.Context)
}

// Part is one start's share of a tree.
type Part struct {
	Awaited
	Once bool // no other start uses it: it is removed even if the tree will be used again
}

// KillHands are what a Tree's Kill needs of the supervisor that made the tree.
type KillHands interface {
	// Change runs do under the lock that guards the Guardians.
	Change(do func())
	// KillNow orders the death of everything in the tree, and does not wait.
	KillNow()
	// Parts lists all parts at one moment, and the container that holds them; nil: there is none. They stay usable until release.
	Parts() (parts []Part, container Awaited, release func())
	// Search adds, by Found, what is alive outside of the container, once all that Parts has listed is dead. again: something may live, and
	// the next round looks once more.
	Search(ctx context.Context) (again bool, err error)
	// Dead frees what the dead tree needed; with end, the tree itself. Its caller holds the lock.
	Dead(end bool) error
}

// Kill kills a tree until its death is proved; with end, it also removes the container, so that no fork can come late. An error says that
// the death is not proved, or that something could not be freed.
func (t *Tree) Kill(ctx context.Context, hands KillHands, end bool) (err error) {
	hands.KillNow() // P2: even if another goroutine is killing, or the context has ended
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrUnproved, context.Cause(ctx))
	}
	var over bool
	hands.Change(func() { over = t.beginKill(end) }) // no fork begins
	if over {
		return nil
	}
	defer hands.Change(t.endKill)
	for {
		var pending bool
		var found int
		var changed <-chan struct{}
		hands.Change(func() { pending, found, changed = t.starting > 0, t.found, t.lease.state.to.Changed() })
		if err := killParts(ctx, hands, end, pending); err != nil {
			return err
		}
		if pending { // P2: while a start is pending, an empty tree proves nothing
			select { // the next round kills a process that is being started
			case <-changed:
				continue
			case <-ctx.Done():
				return fmt.Errorf("%w: a process is being started: %w", ErrUnproved, context.Cause(ctx))
			}
		}
		again, err := hands.Search(ctx)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrUnproved, err)
		}
		over := true
		hands.Change(func() {
			if over = !again && found == t.found; !over { // P2: the next round kills what was found
				return
			}
			if end {
				t.markDead()
			}
			err = hands.Dead(end)
		})
		if over {
			return err
		}
	}
}

// killParts is one round: it kills what is there when it begins.
func killParts(ctx context.Context, hands KillHands, end, pending bool) error {
	parts, container, release := hands.Parts()
	defer release()
	var errs []error
	for _, p := range parts { // before the container, which holds them
		errs = append(errs, killUntilDead(ctx, p, end || p.Once, pending))
	}
	if container != nil { // P2: remove it only when no process that was forked into it lives: others find the tree by it
		all := errors.Join(errs...) == nil
		errs = append(errs, killUntilDead(ctx, container, end && all, pending))
	}
	return errors.Join(errs...)
}

// KillUntilDead kills until death is proved, and (P2) returns nil only then.
func KillUntilDead(ctx context.Context, b Awaited, remove bool) error {
	return killUntilDead(ctx, b, remove, false)
}

func killUntilDead(ctx context.Context, b Awaited, remove, pending bool) error {
	// P2: order the death even if the context has ended.
	err := b.KillNow()
	for {
		dead, looked := killOnce(b, remove, pending)
		if dead {
			return nil
		}
		if looked != nil {
			err = looked
		}
		if ctx.Err() != nil {
			return errors.Join(fmt.Errorf("%w: %w", ErrUnproved, context.Cause(ctx)), err)
		}
		b.Wait(ctx)
	}
}

// KillOnce is one step of killing: it strikes until death is proved, and then removes the container if told to.
func KillOnce(b Killable, remove bool) (dead bool, err error) { return killOnce(b, remove, false) }

// killOnce does not seal while the caller's own process forks into it (pending): the fork would wait for a child that does not run, and
// block a thread that the garbage collector, and so all others, wait for. The kill waits for that fork, and kills its child, in any case.
func killOnce(b Killable, remove, pending bool) (bool, error) {
	dead, err := b.Dead()
	if err != nil {
		return false, err
	}
	if !dead {
		err := b.KillNow()
		if remove && !pending { // P3
			b.Seal()
		}
		return false, errors.Join(err, b.KillHarder())
	}
	if !remove {
		return true, nil
	}
	if err := b.Remove(); err != nil {
		return false, errors.Join(err, b.KillNow()) // a process came in between
	}
	return true, nil
}
