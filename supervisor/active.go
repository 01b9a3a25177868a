package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"understudy/election"
	"understudy/supervisor/child"
)

// active keeps the child running for as long as the lock is ours and the lease lasts, and tells what ended it. The child
// may still be alive when it returns.
func (v *service) active(ctx context.Context, t turn, claim *election.Claim, tree Tree, entry *election.Activation) event {
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		pause(ctx, startFirst) // what is missed meanwhile is seen in the first look
		cancel(fmt.Errorf("%w: %w", election.ErrLost, claim.Watch(ctx)))
	})
	wg.Go(func() {
		pause(ctx, settling)
		name, err := t.cand.Record(ctx, *entry, epitaph(entry.Fenced))
		entry.Entry = name
		if err != nil && ctx.Err() == nil {
			v.log.Debug("the history is incomplete", "service", v.Name, "error", err)
		}
	})
	defer wg.Wait()
	defer cancel(nil)
	for {
		ev, after := v.runOnce(ctx, t, claim.Token, tree)
		if ev != nothingYet {
			return ev
		}
		if !pause(ctx, after) {
			return ending(ctx)
		}
	}
}

// startFirst is what the child's start is given, before anything else is asked of ZooKeeper.
const startFirst = 10 * time.Millisecond

// epitaph is what the history says of a former active that could not say it itself.
func epitaph(fenced string) string {
	if fenced == nobody {
		return "supervisor lost; its child was known to be dead"
	}
	return "lost; fenced: " + fenced
}

// nothingYet is runOnce's word for: start it again.
const nothingYet event = 255

// runOnce starts the child, waits for its end or for an order, and leaves nothing of it alive when it is to be started
// again.
func (v *service) runOnce(ctx context.Context, t turn, token int64, tree Tree) (event, time.Duration) {
	p, err := tree.Start(ctx, child.Spec{Argv: v.Command, Dir: v.Dir, Env: v.environment(token), Stdout: os.Stdout, Stderr: os.Stderr})
	switch {
	case errors.Is(err, child.ErrLeaseEnded), errors.Is(err, child.ErrGuardiansLost):
		return leaseEnding, 0
	case err != nil && ctx.Err() != nil:
		return ending(ctx), 0
	case err != nil:
		v.log.Error("the command cannot be started", "service", v.Name, "command", v.Command[0], "error", err)
		return v.afterEnd(child.ExitStatus{Code: 127}, false)
	}
	v.process = p
	v.log.Info("child started", "service", v.Name, "pid", p.Pid(), "token", token)
	select {
	case <-p.Done():
	case <-ctx.Done():
		ev := ending(ctx)
		v.on(ev, "token", token)
		v.stop(t, p, ev)
		return ev, 0
	}
	status := exitOf(p)
	// What the child left behind ends with it.
	if err := v.empty(ctx, tree); err != nil {
		return ending(ctx), 0
	}
	if v.leaseOver(t) {
		return leaseEnding, 0 // that is why it ended: not its own doing
	}
	v.log.Info("child ended", "service", v.Name, "pid", p.Pid(), "status", describe(status))
	return v.afterEnd(status, true)
}

func (v *service) leaseOver(t turn) bool {
	select {
	case <-v.guard.Over(t.epoch):
		return true
	case <-t.sess.Ended():
		return true
	default:
		return v.machine.Now() >= t.sess.LeaseEnd()
	}
}

// afterEnd applies the restart policy.
func (v *service) afterEnd(status child.ExitStatus, started bool) (event, time.Duration) {
	if v.Once {
		v.finished = &status
		return childOnce, 0
	}
	next := v.tries.ended(time.Now(), status.Code == 0, started)
	if next.again {
		v.log.Warn("starting the child again", "service", v.Name, "after", next.after)
		return nothingYet, next.after
	}
	v.log.Warn("giving the service to another node", "service", v.Name, "why", next.why)
	if status.Code == 0 {
		return childDone, 0
	}
	return childFailed, 0
}

// empty kills what is left of the tree, and goes on until that is proved or the term has to end.
func (v *service) empty(ctx context.Context, tree Tree) error {
	for {
		bounded, cancel := context.WithTimeout(ctx, proofPatience)
		err := tree.Kill(bounded)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
		v.log.Error("what the child left behind does not die", "service", v.Name, "error", err)
	}
}

// stop asks the child to end, for as long as that can be waited for. Killing is the caller's.
func (v *service) stop(t turn, p Process, why event) {
	if why == lockLost {
		return // another node may be counting its grace delay
	}
	v.log.Info("stopping the child", "service", v.Name, "pid", p.Pid(), "signal", unix.SignalName(v.StopSignal), "timeout", v.StopTimeout)
	if err := p.Signal(v.StopSignal); err != nil {
		v.log.Debug("cannot signal the child", "service", v.Name, "error", err)
		return
	}
	patience := time.NewTimer(v.StopTimeout)
	defer patience.Stop()
	select {
	case <-p.Done():
		v.log.Info("child ended", "service", v.Name, "pid", p.Pid(), "status", describe(exitOf(p)))
	case <-patience.C:
		v.log.Warn("the child did not stop in time, killing it", "service", v.Name, "pid", p.Pid())
	case <-t.sess.Ended(): // P3
		v.log.Warn("the lease has ended, killing the child", "service", v.Name, "pid", p.Pid())
	case <-v.hurry:
		v.log.Warn("asked again to stop, killing the child", "service", v.Name, "pid", p.Pid())
	}
}

// environment is ours, the service's, and what the child should know.
func (v *service) environment(token int64) []string {
	env := append(os.Environ(), v.Env...)
	return append(env, "UNDERSTUDY_SERVICE="+v.Name, "UNDERSTUDY_NODE="+v.node.Node, "UNDERSTUDY_TOKEN="+strconv.FormatInt(token, 10))
}

// exitOf is how a process that has ended did so.
func exitOf(p Process) child.ExitStatus {
	<-p.Done()
	status, _ := p.Wait(context.Background())
	return status
}

func describe(s child.ExitStatus) string {
	switch {
	case s.Unknown:
		return "unknown"
	case s.Signal != 0:
		return "killed by " + unix.SignalName(s.Signal)
	}
	return "exit code " + strconv.Itoa(s.Code)
}
