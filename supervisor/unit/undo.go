package unit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy/supervisor/child"
	"understudy/supervisor/config"
	"understudy/supervisor/wait"
)

// How long the pause after an undo that failed is.
const (
	firstUndoPause   = time.Second
	longestUndoPause = 30 * time.Second
)

// LoadUndos reads, once, the pending undos of a supervisor of this node that was killed.
func (u *Unit) LoadUndos() { u.undos.load() }

// PendingUndos are for the next image of this process.
func (u *Unit) PendingUndos() []PendingUndo { return u.undos.list() }

// Lasting is the newest term whose effects may survive a boot, for the next image of this process.
func (u *Unit) Lasting() int64 { return u.undos.lasts() }

// Restore takes over a previous image's pending undos, and undoes none of them.
func (u *Unit) Restore(all []PendingUndo, lasting int64) { u.undos.restore(all, lasting) }

// Last notes that effects of a term may survive a boot, before anything says so to others; token 0: none does. P2: later its token is the
// proof that the note is of that term, and complete.
func (u *Unit) Last(token int64) error { return u.undos.last(token) }

// CannotNote is why this node could not note how to undo what a service's programs do, and so could not start it; nil: it can, or there is
// nothing to undo.
func (u *Unit) CannotNote(c config.Service) error {
	e := EffectsOf(c)
	if len(e.Names) == 0 {
		return nil
	}
	return u.undos.store.Try(len(e.Survive) > 0)
}

// HasPendingEffects reports whether there are pending undos, or may be. Other goroutines may call it.
func (u *Unit) HasPendingEffects() bool { return len(u.PendingEffects()) > 0 }

// PendingEffects names the effects that are not undone. P2: those of a note that cannot be read are unknown.
func (u *Unit) PendingEffects() (names []string) {
	u.undos.mu.Lock()
	defer u.undos.mu.Unlock()
	for _, d := range u.undos.all {
		names = append(names, d.Name)
	}
	if u.undos.unread != nil {
		names = append(names, unknownEffects)
	}
	return names
}

// Left is PendingEffects without what a guardian has undone: it may have done so while this process was frozen.
func (u *Unit) Left() []string {
	u.undos.dropUndone()
	return u.PendingEffects()
}

// NotUndone says what is not undone although it was tried, why, and when it is tried again; "": nothing.
func (u *Unit) NotUndone() string {
	u.undos.mu.Lock()
	defer u.undos.mu.Unlock()
	return u.undos.fault
}

// Undo runs all pending undos, and stops at the first that fails: what came before it may need it. The tree is dead. nil: nothing is owed
// any more.
func (u *Unit) Undo(ctx context.Context) error { return u.undoPending(ctx, 0) }

// Leaving is what shortens UndoAll: once Asked is closed somebody waits for it. Then the pauses are short, and the try that ends after
// Within is the last. nil: nobody waits.
type Leaving struct {
	Asked  <-chan struct{}
	Within time.Duration
}

// UndoAll repeats Undo with growing pauses, and calls told after each failure. It reports whether all is undone: false if ctx has ended.
func (u *Unit) UndoAll(ctx context.Context, l Leaving, told func()) bool {
	return u.undoUntilDone(ctx, nil, l, told)
}

// StartUndo does what UndoAll does, and returns at once. The caller calls StopUndo before anything is started.
func (u *Unit) StartUndo(ctx context.Context) {
	u.StopUndo()
	enough := make(chan struct{})
	u.enough = enough
	u.undoing.Go(func() { u.undoUntilDone(ctx, enough, Leaving{}, func() {}) })
}

// StopUndo ends StartUndo's work, after the attempt that is under way.
func (u *Unit) StopUndo() {
	if u.enough != nil {
		close(u.enough)
		u.enough = nil
	}
	u.undoing.Wait()
}

func (u *Unit) undoUntilDone(ctx context.Context, enough <-chan struct{}, l Leaving, told func()) bool {
	var until time.Time // zero: nobody waits
	for pause := firstUndoPause; ; pause = min(2*pause, longestUndoPause) {
		if until.IsZero() && wait.Closed(l.Asked) {
			until, l.Asked = time.Now().Add(l.Within), nil
		}
		if !until.IsZero() {
			pause = min(firstUndoPause, time.Until(until))
		}
		before := len(u.undos.list())
		err := u.undoPending(ctx, pause)
		if err == nil || ctx.Err() != nil || wait.Closed(enough) || !until.IsZero() && !time.Now().Before(until) {
			return err == nil
		}
		told()
		if len(u.undos.list()) < before {
			pause = firstUndoPause
		}
		next := time.NewTimer(pause)
		over := false
		select {
		case <-next.C:
		case <-l.Asked:
		case <-enough:
			over = true
		case <-ctx.Done():
			over = true
		}
		next.Stop()
		if over {
			return false
		}
	}
}

// undoPending is one attempt to run all pending undos. again is when the next one follows; 0: the caller does not know.
func (u *Unit) undoPending(ctx context.Context, again time.Duration) error {
	unlock, ok := u.undos.lock(ctx)
	if !ok {
		return context.Cause(ctx)
	}
	defer unlock()
	if err := u.undos.known(); err != nil {
		return err
	}
	release, err := u.undos.exclude(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := u.undos.saveDropped(); err != nil {
		return err
	}
	for {
		d, owes := u.undos.newest()
		if !owes {
			return nil
		}
		if err := u.endEarlier(ctx, d); err != nil {
			return err
		}
		err := u.undo(ctx, d, again, func(ctx context.Context, what string, spec child.Spec) error {
			return u.Command(ctx, what, spec, d.Timeout)
		})
		if err != nil {
			return err
		}
		if ctx.Err() != nil && u.HasPendingEffects() {
			return context.Cause(ctx)
		}
	}
}

// endEarlier proves that an undo which hung has ended. P2: a file system whose unmount hangs is in no table of mounts any more, and is
// written to once its disk answers.
func (u *Unit) endEarlier(ctx context.Context, d PendingUndo) error {
	if u.hung == nil {
		return nil
	}
	if err := endTree(ctx, u.hung); err != nil {
		err = fmt.Errorf("not undone: %s: an earlier attempt has not ended: %w", called(d.Name), err)
		u.undos.noteFault(err.Error())
		return err
	}
	u.hung = nil
	return nil
}

// The words for the two commands of a pending undo.
const (
	undoes     = "undo"
	asksUndone = "undone"
)

// run undoes it with run. P2: only once its undo has ended by itself is anybody believed that nothing is left. Before that the oneshot
// may have been killed half done, and the undo too: what it has set going elsewhere is not seen. And only a plain yes counts, as from a
// command that complains of nothing.
func (d PendingUndo) run(run func(what string, command []string) error) error {
	err := run(undoes, d.Command)
	if _, ended := errors.AsType[*Exited](err); !ended || len(d.Undone) == 0 {
		return err
	}
	no := run(asksUndone, d.Undone)
	if no == nil {
		return nil
	}
	if plain, ended := errors.AsType[*Exited](no); ended && *plain == (Exited{Code: 1}) {
		return fmt.Errorf("%w (undone says no)", err)
	}
	return fmt.Errorf("%w (undone: %w)", err, no)
}

// undo runs a pending undo's command, and drops the pending undo if that succeeds.
func (u *Unit) undo(
	ctx context.Context, d PendingUndo, again time.Duration, run func(ctx context.Context, what string, spec child.Spec) error,
) error {
	u.log.Info("undoing", "service", u.cfg.Service, "process", d.Name, "timeout", d.Timeout)
	err := d.run(func(what string, command []string) error {
		return run(ctx, what, child.Spec{Argv: command, Env: u.Facts(d.Token)})
	})
	if err == nil {
		u.log.Info("undone", "service", u.cfg.Service, "process", d.Name)
		u.undos.dropNewest()
		return nil
	}
	if left, ok := errors.AsType[*unprovedCommand](err); ok {
		u.hung = left.tree
	}
	err = fmt.Errorf("not undone: %s: %w", called(d.Name), err)
	if ctx.Err() != nil || errors.Is(err, errCut) { // it was interrupted
		return err
	}
	words, facts := err.Error(), []any{"service", u.cfg.Service, "process", d.Name, "command", d.Command, "error", err}
	if again > 0 {
		words += fmt.Sprintf(", next try in %v", again)
		facts = append(facts, "again in", again)
	}
	u.undos.noteFault(words)
	u.log.Warn("a oneshot is not undone: until it is, no node may start the service without a proof", facts...)
	return err
}

// Effects are what programs may leave beside processes.
type Effects struct {
	Names     []string
	Undoing   time.Duration // how long undoing all may take
	NeedProof []string      // after the loss of this host no delay is a proof for these
	Survive   []string      // nor is another boot of it for these
}

// EffectsOf are those of a service.
func EffectsOf(s config.Service) (e Effects) {
	for _, p := range s.Processes {
		if p.NeedsProof || p.SurvivesBoot { // while the host is off nobody undoes it
			e.NeedProof = append(e.NeedProof, p.Name)
		}
		if p.Oneshot && len(p.Undo) > 0 {
			e.Names = append(e.Names, p.Name)
			if p.SurvivesBoot {
				e.Survive = append(e.Survive, p.Name)
			}
			if p.Sets == nil { // guardians remove an address as they kill a program, in the lease's slack
				e.Undoing += p.UndoTimeout
			}
		}
	}
	return e
}
