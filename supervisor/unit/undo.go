package unit

import (
	"context"

	"understudy/supervisor/child"
)

// LoadDebts reads, once, the debts of a supervisor of this node that was killed.
func (u *Unit) LoadDebts() { u.debts.load() }

// Debts are for the next image of this process.
func (u *Unit) Debts() []Debt { return u.debts.list() }

// Restore takes over a former image's debts, and undoes none of them.
func (u *Unit) Restore(all []Debt) { u.debts.restore(all) }

// Owes reports whether there are debts. Other goroutines may call it.
func (u *Unit) Owes() bool {
	_, owes := u.debts.newest()
	return owes
}

// UndoAll runs all debts. The tree is dead.
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

// StartUndo starts UndoAll, and returns at once. The next run waits for it.
func (u *Unit) StartUndo(ctx context.Context) { u.undoing.Go(func() { u.UndoAll(ctx) }) }

// WaitUndone waits for the end of StartUndo's work.
func (u *Unit) WaitUndone() { u.undoing.Wait() }

// undo runs the newest debt's command. If it fails, the log says so, and undo does not retry. If the tree's end interrupted it, as cut
// reports, it is still due.
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
		u.log.Error("a oneshot could not be undone", "service", u.cfg.Service, "process", d.Name, "command", d.Command, "error", err)
	} else {
		u.log.Info("undone", "service", u.cfg.Service, "process", d.Name)
	}
	u.debts.settle()
}
