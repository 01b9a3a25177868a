package replica

import (
	"context"
	"errors"
	"sync"
	"time"

	"understudy/supervisor/child"
	"understudy/supervisor/config"
	"understudy/supervisor/host"
	"understudy/supervisor/unit"
	"understudy/supervisor/wait"
)

const (
	proofPatience = 5 * time.Second  // for one attempt to prove a death
	endPatience   = 30 * time.Second // for all, when this supervisor ends
	treeRetry     = time.Second
)

// lasts is the lease of a follower: only its supervisor's end ends it.
const lasts = 50 * 365 * 24 * time.Hour

// Keep runs the copy as a follower whenever no term has it, until ctx ends. Then it stops the copy, unless that is parting.
func (c *Copy) Keep(ctx context.Context) {
	if ctx.Err() == nil {
		c.open()
		if err := c.data.restore(); err != nil {
			c.log.Error("cannot read which primary this node's copy has followed: it is not promoted until it has followed one",
				"error", err)
		}
	}
	var delay time.Duration
	for ctx.Err() == nil {
		if c.deliver(nil, errNotRuns) || c.isHeld() {
			delay = 0
			c.sleep(ctx, endless)
			continue
		}
		if c.cfg.Unit.HasPendingEffects() { // P2: no client may reach a follower through the address of a primary
			c.show(func(s *Shown) { *s = Shown{Role: Unknown, Why: "the effects of its promotion are not undone yet"} })
			c.sleep(ctx, lookSoon)
			continue
		}
		tree, err := c.make(ctx)
		if err != nil {
			if ctx.Err() == nil {
				c.log.Warn("cannot make a container for this node's copy, trying again", "error", err)
			}
			c.sleep(ctx, treeRetry)
			continue
		}
		if why := c.Halted(); why != "" && c.lending.now().resume == nil {
			c.show(func(s *Shown) { *s = Shown{Role: Unknown, Why: why} })
			c.sleep(ctx, endless)
			continue
		}
		if c.lending.now().resume == nil && !c.mends.prepare(ctx, tree) {
			continue
		}
		began := time.Now()
		why := c.follow(ctx, tree)
		if why == nil || ctx.Err() != nil {
			continue
		}
		restart := c.config().Restart
		delay = min(max(2*delay, restart.Delay), max(restart.MaxDelay, restart.Delay))
		if time.Since(began) > restart.Within {
			delay = restart.Delay
		}
		if orderly(why) {
			delay = 0
		} else {
			c.mends.noteEnd(began, why)
			c.log.Warn("this node's copy has ended, starting it again", "why", why, "after", delay)
		}
		c.show(func(s *Shown) { *s = Shown{Role: Unknown, Why: why.Error()} })
		if ended(why) {
			c.end(ctx)
		}
		c.sleep(ctx, delay)
	}
	if parting(ctx) && c.Carry() != nil {
		return
	}
	c.mu.Lock()
	c.close()
	c.orders.answer(errClosed)
	c.mu.Unlock()
	c.end(ctx)
}

const endless = 365 * 24 * time.Hour

// sleep waits until something has changed, or for d.
func (c *Copy) sleep(ctx context.Context, d time.Duration) {
	over := time.After(d)
	for {
		select {
		case <-over:
			return
		case <-ctx.Done():
			return
		case <-c.poke:
			if d == endless || c.isHeld() || c.orders.current() != nil {
				return
			}
		}
	}
}

// orderly reports whether the program was stopped to be started again.
func orderly(why error) bool {
	return errors.Is(why, unit.ErrChanged) || errors.Is(why, errDiverges) || errors.Is(why, errOrdered) || errors.Is(why, errHalted) ||
		errors.Is(why, errCannotFollow)
}

// ended reports whether nothing can be started in the tree any more: another node has had it killed, or the guardians were lost.
func ended(why error) bool {
	return errors.Is(why, child.ErrTreeEnded) || errors.Is(why, child.ErrLeaseEnded) || errors.Is(why, child.ErrGuardiansLost)
}

// follow runs the program as a follower once. It returns why it ended, after its death; nil: a term has taken it over.
func (c *Copy) follow(ctx context.Context, tree host.Tree) error {
	c.mu.Lock()
	conf, resume := c.conf, c.takeResume()
	orders := &obeying{c: c}
	if resume == nil {
		orders.newest, c.following = c.orders.current(), Active{}
	}
	c.mu.Unlock()
	c.show(func(s *Shown) { s.Ill = "" }) // that was said of other programs
	run := c.cfg.Unit.Start(ctx, unit.RunConfig{
		Tree: tree, Conf: conf.Copy(), Env: Active{}.Environ(false), MayStart: func() error { return nil }, Adopt: resume,
		Health: func(said string) { c.show(func(s *Shown) { s.Ill = said }) }, Astray: func(string) {},
	})
	defer run.Close()
	c.mu.Lock()
	c.run = run
	c.mu.Unlock()
	if conf.Warm != nil && resume == nil {
		c.show(func(s *Shown) { s.Role, s.Why = Unknown, Starting })
	}
	if resume != nil { // it may have to end, since a term has it no more
		wait.Poke(c.poke)
	}
	orders.run, orders.ready = run, run.Ready()
	looking, enough := context.WithCancel(ctx)
	var looks sync.WaitGroup
	looks.Go(func() { c.keepLooking(looking, run) })
	looks.Go(func() { c.keepSeeing(looking, run) })
	endLooking := func() {
		enough()
		looks.Wait()
		c.mu.Lock()
		c.run = nil
		c.mu.Unlock()
	}
	for {
		select {
		case <-run.Done():
			endLooking()
			if c.parts(ctx, run) {
				return nil
			}
			why := c.stopped(ctx, run, tree, conf)
			orders.ended(why)
			return why
		case <-orders.ready:
			orders.started()
			c.stands(conf)
			continue
		case failed := <-orders.checked:
			orders.reload(failed)
			continue
		case <-orders.reloaded:
			orders.reloaded = nil
			c.orders.answerTo(orders.newest, nil)
			continue
		case <-c.poke:
		}
		if c.lending.now().want != nil {
			endLooking()
			run.End(errHeld)
			carried, err := handOver(run, errHeld)
			c.deliver(carried, err)
			return nil
		}
		conf = c.config()
		if c.Halted() != "" {
			run.End(errHalted)
		} else if run.Outdated(conf.Copy()) {
			run.End(unit.ErrChanged)
		} else {
			run.Reconfigure(conf.Copy())
			orders.look(ctx)
		}
	}
}

func handOver(run *unit.Run, as error) (*unit.CarriedRun, error) {
	if why := run.Wait(); !errors.Is(why, as) {
		return nil, why
	}
	carried, ok := run.HandOver()
	if !ok {
		return nil, errNotRuns
	}
	return carried, nil
}

// stopped ends a run, with proof, in an orderly way if nothing speaks against it. It returns why the run has ended.
func (c *Copy) stopped(ctx context.Context, run *unit.Run, tree host.Tree, conf config.Service) error {
	why := run.Wait()
	if ctx.Err() != nil || orderly(why) {
		run.Stop(ctx, conf, unit.Cut{})
	}
	if errors.Is(why, errPrimary) {
		c.log.Error("this node's copy reports that it is the primary, but this node does not hold the lock: killing it")
	}
	if !c.isHeld() { // else the term ends the tree
		c.kills(ctx, tree.Kill)
	}
	return why
}
