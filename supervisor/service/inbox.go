package service

import (
	"context"
	"errors"
	"reflect"
	"sync"

	"understudy/election"
	"understudy/supervisor/config"
	"understudy/supervisor/wait"
)

// inbox is what a service learns from outside its own goroutine.
type inbox struct {
	stir  chan struct{} // capacity 1: something of what follows has changed
	stood chan struct{} // capacity 1: the precheck is to be run

	mu       sync.Mutex // guards what follows
	conf     Conf       // as it was last given
	fresh    bool       // it is not in force yet
	wishes   election.Intents
	heeded   bool            // the wishes of this session are known
	erased   bool            // all of the service was deleted by hand: another candidate is needed
	fit      fitness         // what the precheck says
	tamed    fitness         // whether the watchdog can be armed
	stands   bool            // this node is a candidate: only then the precheck is run
	programs programs        // what is known of those that run
	precheck config.Precheck // as it is in force
}

// fitness is whether this node can do something.
type fitness struct {
	known bool
	why   string // why not; "": it can
}

// programs is what a run has told.
type programs struct {
	health string // what its newest health check says; "": it is well
	astray string // which programs have left their cgroups
}

func newInbox(c Conf) inbox {
	return inbox{stir: make(chan struct{}, 1), stood: make(chan struct{}, 1), conf: c, precheck: c.Precheck}
}

// tell changes something, and wakes the service.
func (n *inbox) tell(change func()) {
	n.mu.Lock()
	change()
	n.mu.Unlock()
	wait.Poke(n.stir)
}

// look reads something.
func look[T any](n *inbox, read func() T) T {
	n.mu.Lock()
	defer n.mu.Unlock()
	return read()
}

func (n *inbox) given() Conf { return look(n, func() Conf { return n.conf }) }

func (n *inbox) give(c Conf) { n.tell(func() { n.conf, n.fresh = c, true }) }

// takeUp returns a config that is not in force yet, and has a changed precheck run.
func (n *inbox) takeUp(was config.Precheck) (c Conf, fresh bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.fresh {
		return c, false
	}
	n.fresh = false
	if !reflect.DeepEqual(was, n.conf.Precheck) {
		n.precheck, n.fit = n.conf.Precheck, fitness{}
		wait.Poke(n.stood)
	}
	return n.conf, true
}

// newSession forgets what was learned in another one, which may have had another timeout.
func (n *inbox) newSession() {
	n.tell(func() { n.heeded, n.erased, n.tamed.known = false, false, false })
}

// stand says whether this node is a candidate.
func (n *inbox) stand(yes bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stands = yes
	if yes {
		wait.Poke(n.stood)
	}
}

// control is what operators want.
func (n *inbox) control() election.Control {
	return look(n, func() election.Control { return n.wishes.Control })
}

// isErased tells whether all of the service was deleted since this candidate was made.
func (n *inbox) isErased() bool { return look(n, func() bool { return n.erased }) }

// errStirred ends a wait: there is news.
var errStirred = errors.New("there is news")

// untilStirred calls await, which is to end with errStirred when there is news.
func (n *inbox) untilStirred(ctx context.Context, await func(context.Context) error) error {
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
	err := await(ctx)
	cancel(nil)
	wg.Wait()
	if stirred && !errors.Is(err, errStirred) {
		wait.Poke(n.stir) // it came too late for this wait, and counts for the next one
	}
	return err
}
