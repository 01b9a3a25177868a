package supervisor

import (
	"context"
	"errors"
	"reflect"
	"sync"

	"understudy/election"
)

// news is what a service learns from outside its own goroutine.
type news struct {
	stir  chan struct{} // capacity 1: something of what follows has changed
	stood chan struct{} // capacity 1: the precheck is to be run

	mu       sync.Mutex // guards what follows
	next     *Service   // its config, changed
	wishes   election.Wishes
	heeded   bool   // the wishes of this session are known
	erased   bool   // all of the service was deleted by hand: it has to stand anew
	unfit    string // why the precheck failed
	tested   bool   // the precheck has been run
	tamed    bool   // it is known whether the watchdog can be armed
	untamed  string // why it cannot
	standing bool   // this node stands for election: only then is the precheck run
	health   string // what the newest health check says; "": it is well
	astray   string // which programs have left their cgroups
}

func newNews() news { return news{stir: make(chan struct{}, 1), stood: make(chan struct{}, 1)} }

// tell changes something, and wakes the service.
func (n *news) tell(change func()) {
	n.mu.Lock()
	change()
	n.mu.Unlock()
	poke(n.stir)
}

// poke signals on a channel of capacity 1.
func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// errStirred ends a wait: there is news.
var errStirred = errors.New("there is news")

// untilStirred calls wait, which is to end with errStirred when there is news.
func (n *news) untilStirred(ctx context.Context, wait func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	stirred := false
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-n.stir:
			stirred = true
			cancel(errStirred)
		case <-ctx.Done():
		}
	})
	err := wait(ctx)
	cancel(nil)
	wg.Wait()
	if stirred && !errors.Is(err, errStirred) {
		poke(n.stir) // it came too late for this wait, and counts for the next one
	}
	return err
}

// hindrance is why a node does not stand for election now.
type hindrance struct {
	paused  bool
	unknown bool   // it is not known yet
	why     string // "" when it may stand
}

// hindrance tells what keeps this node from standing, and under which wishes.
func (v *service) hindrance() (election.Wishes, hindrance) {
	v.news.mu.Lock()
	defer v.news.mu.Unlock()
	n := &v.news
	prechecked := len(v.Precheck.Exec) > 0 && !v.forcedLocked()
	switch {
	case !v.Eligible:
		return n.wishes, hindrance{why: "eligible: false in its config"}
	case !n.heeded:
		return n.wishes, hindrance{unknown: true, why: "it is not known yet whether it may"}
	case n.wishes.Control.Paused:
		return n.wishes, hindrance{paused: true, why: n.wishes.Control.Words()}
	case prechecked && !n.tested:
		return n.wishes, hindrance{unknown: true, why: "the precheck has not run yet"}
	case prechecked && n.unfit != "":
		return n.wishes, hindrance{why: "precheck: " + n.unfit}
	case v.watchdog == nil || !v.watchdog.Required:
	case !n.tamed:
		return n.wishes, hindrance{unknown: true, why: "it is not known yet whether the watchdog can be armed"}
	case n.untamed != "":
		return n.wishes, hindrance{why: "watchdog: " + n.untamed}
	}
	return n.wishes, hindrance{}
}

// erased tells whether all of the service was deleted since it stood.
func (v *service) erased() bool {
	v.news.mu.Lock()
	defer v.news.mu.Unlock()
	return v.news.erased
}

// forced tells whether an operator wants this node to be active whatever it is like.
func (v *service) forced() bool {
	v.news.mu.Lock()
	defer v.news.mu.Unlock()
	return v.forcedLocked()
}

// forcedLocked is forced for who holds news.mu. An order that was followed once is not followed again, should it still be there.
func (v *service) forcedLocked() bool {
	c := v.news.wishes.Control
	return c.Forces(v.node.Node) && c.Switchover.ID != v.followed
}

// follow notes that an order to take the service is followed.
func (v *service) follow() {
	v.news.mu.Lock()
	defer v.news.mu.Unlock()
	if s := v.news.wishes.Control.Switchover; s != nil && s.To == v.node.Node {
		v.followed = s.ID
	}
}

// takeUp makes a changed config the service's own, and tells whether there was one.
func (v *service) takeUp() bool {
	v.news.mu.Lock()
	defer v.news.mu.Unlock()
	if v.news.next == nil {
		return false
	}
	v.Service, v.news.next = *v.news.next, nil
	v.relapses.reset() // what did not work may work now
	if v.tries.cfg = v.Restart; !reflect.DeepEqual(v.precheck, v.Precheck) {
		v.precheck, v.news.tested = v.Precheck, false
		poke(v.news.stood)
	}
	return true
}
