package unit

import (
	"context"

	"understudy/supervisor/child"
)

// LoadDebts takes over, once, what a supervisor of this node that was killed had left to be undone.
func (u *Unit) LoadDebts() { u.debts.load() }

// Debts are what is to be undone, for the next image of this process.
func (u *Unit) Debts() []Debt { return u.debts.list() }

// Restore is Debts' reverse: nothing of it is to be undone now.
func (u *Unit) Restore(all []Debt) { u.debts.restore(all) }

// Owes tells whether something is still to be undone. Other goroutines may ask.
func (u *Unit) Owes() bool {
	_, owes := u.debts.newest()
	return owes
}

// UndoAll undoes all that is left. The tree is dead.
func (u *Unit) UndoAll(ctx context.Context) {
	unlock, ok := u.debts.lock(ctx)
	if !ok {
		return
	}
	defer unlock()
	never := func() bool { return false }
	for u.Owes() && ctx.Err() == nil {
		u.undo(ctx, never, func(d Debt, spec child.Spec) error { return u.Command(ctx, "undo", spec, d.Timeout) })
	}
}

// StartUndo is UndoAll beside what goes on: the next run waits for it.
func (u *Unit) StartUndo(ctx context.Context) { u.undoing.Go(func() { u.UndoAll(ctx) }) }

// WaitUndone waits for what is undone beside.
func (u *Unit) WaitUndone() { u.undoing.Wait() }

// undo runs the newest debt's command. One that fails is not tried again: the operator is told. One that was interrupted, as cut
// tells, since the tree went, is still due.
func (u *Unit) undo(ctx context.Context, cut func() bool, run func(Debt, child.Spec) error) {
	d, ok := u.debts.newest()
	if !ok {
		return
	}
	u.log.Info("undoing", "service", u.cfg.Service, "process", d.Name, "timeout", d.Timeout)
	err := run(d, child.Spec{Argv: d.Command, Env: u.Facts(d.Token)})
	if err != nil && (ctx.Err() != nil || cut()) {
		return
	}
	if err != nil {
		u.log.Error("what a process did could not be undone", "service", u.cfg.Service, "process", d.Name, "command", d.Command, "error", err)
	} else {
		u.log.Info("undone", "service", u.cfg.Service, "process", d.Name)
	}
	u.debts.settle()
}
