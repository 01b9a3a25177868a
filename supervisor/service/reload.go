package service

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"understudy/supervisor/unit"
	"understudy/supervisor/wait"
)

// reload tells the programs to reload, unless their check has failed.
func (t *term) reload(ctx context.Context, failed error) {
	v := t.v
	t.run.checked = nil
	if failed == nil {
		t.run.programs.Reload(syscall.Signal(v.conf.ReloadSignal))
		t.run.reloaded = time.After(unit.ReloadPatience)
		return
	}
	v.log.Warn("the reload check fails, so the program is not told to reload", "service", v.name, "why", failed)
	v.inbox.intents.reload = reload{failed: fmt.Sprintf("%s was not told to reload, because its reload_check failed: %v", v.name, failed)}
	t.confirm(ctx)
}

// judgeReload notes what a reload that is still observed has led to: why the run ended, or nil if it goes on.
func (t *term) judgeReload(why error) {
	if t.run.checked != nil { // the next run reads its config anyway
		t.run.checked, t.v.inbox.intents.reload = nil, reload{}
	}
	if t.run.reloaded == nil {
		return
	}
	t.run.reloaded = nil
	v, who := t.v, t.v.name
	if ended, ok := errors.AsType[*unit.Ended](why); ok && len(v.conf.Processes) > 1 {
		who += "'s process " + ended.Name
	}
	v.inbox.intents.reload = reload{}
	if failed := unit.FailedReload(why, who, syscall.Signal(v.conf.ReloadSignal)); failed != nil {
		v.inbox.intents.reload.failed = failed.Error()
	}
}

// confirmFailure tells the command that has ordered a reload that it failed.
func (t *term) confirmFailure(ctx context.Context) {
	if t.v.inbox.intents.reload.failed != "" {
		t.confirm(ctx)
	}
}

// confirm removes the orders that this activation has executed, or that were for a previous one.
func (t *term) confirm(ctx context.Context) {
	takeBack := t.v.inbox.intents.answer(t.v.mem.lastTerm.token)
	if takeBack == nil {
		return
	}
	t.helpers.Go(func() {
		wait.For(ctx, settling) // no urgent work waits for it
		if err := t.cand.Control.Amend(ctx, takeBack); err != nil && ctx.Err() == nil {
			t.v.log.Warn("cannot remove an operator's order", "error", err)
		}
	})
}
