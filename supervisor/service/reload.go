package service

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/unit"
)

// reloadPatience is how long the programs have to live after their reload signal: it kills one that has no handler for it.
const reloadPatience = time.Second

// reload tells the programs to reload, unless their check has failed.
func (t *stay) reload(ctx context.Context, failed error) {
	v := t.v
	t.run.checked = nil
	if failed == nil {
		t.run.programs.Reload(syscall.Signal(v.conf.ReloadSignal))
		t.run.reloaded = time.After(reloadPatience)
		return
	}
	v.log.Warn("the reload check fails, so the program is not told to reload", "service", v.name, "why", failed)
	v.inbox.intents.reload = reload{failed: fmt.Sprintf("%s was not told to reload, because its reload_check failed: %v", v.name, failed)}
	t.confirm(ctx)
}

// judgeReload notes what a reload that is still observed has led to: why the run ended, or nil if it goes on.
func (t *stay) judgeReload(why error) {
	if t.run.checked != nil { // the next run reads its config anyway
		t.run.checked, t.v.inbox.intents.reload = nil, reload{}
	}
	if t.run.reloaded == nil {
		return
	}
	t.run.reloaded = nil
	v, who := t.v, t.v.name
	var ended *unit.Ended
	if errors.As(why, &ended) && len(v.conf.Processes) > 1 {
		who += "'s process " + ended.Name
	}
	v.inbox.intents.reload = reload{failed: failedReload(why, who, syscall.Signal(v.conf.ReloadSignal))}
}

// failedReload says what went wrong if a program has ended right after its reload signal.
func failedReload(why error, who string, sig syscall.Signal) string {
	var ended *unit.Ended
	switch {
	case !errors.As(why, &ended):
		return ""
	case ended.Status.Signal == sig:
		return fmt.Sprintf("%s ended by %s within %v; it has no handler for its reload signal: set reload_signal, or use restart",
			who, unix.SignalName(sig), reloadPatience)
	}
	return fmt.Sprintf("%s ended within %v of its reload signal, %s: %s", who, reloadPatience, unix.SignalName(sig), unit.Describe(ended.Status))
}

// confirmFailure tells the command that has ordered a reload that it failed.
func (t *stay) confirmFailure(ctx context.Context) {
	if t.v.inbox.intents.reload.failed != "" {
		t.confirm(ctx)
	}
}
