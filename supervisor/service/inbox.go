package service

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/service/role"
	"understudy/supervisor/unit"
	"understudy/supervisor/wait"
)

// inbox is all that a service learns from outside its own goroutine.
type inbox struct {
	news     news
	given    given
	intents  intents
	precheck precheck
	watchdog armable
}

func newInbox(node *LocalNode, c Conf, u *unit.Unit, log hclog.Logger) *inbox {
	n := newNews()
	lacks := node.Lacks
	if c.Once { // it is told by the exit code
		lacks = nil
	}
	return &inbox{
		news: n, given: given{news: n, conf: c}, intents: intents{node: node.Self.Node, log: log, news: n, copy: make(chan struct{}, 1)},
		precheck: precheck{
			unit: u, lacks: lacks, due: make(chan struct{}, 1), found: finding{news: n}, lack: finding{news: n}, conf: c.Service,
			probeDue: make(chan struct{}, 1), probed: finding{news: n},
		},
		watchdog: armable{watchdog: node.Watchdog, guard: node.Guard, found: finding{news: n}},
	}
}

// newSession drops the knowledge of another session, which may have had another timeout.
func (n *inbox) newSession() {
	n.watchdog.found.write(fitness{})
	n.intents.newSession()
}

// bar returns the reason that keeps this node from being a candidate, also in words, and the intents that it is based on.
func (n *inbox) bar(conf Conf) (election.Intents, role.Bar, string) {
	now, known := n.intents.read()
	b, why := barrier{
		eligible: conf.Eligible, asked: known, control: now.Control, drained: now.Drained, forced: n.intents.forces(now.Control),
		prechecked: len(conf.Precheck.Exec) > 0, precheck: n.precheck.found.read(),
		looked: n.precheck.lacks != nil, lack: n.precheck.lack.read(),
		hasAgents: len(probesOf(conf.Service)) > 0, agents: n.precheck.probed.read(),
		guarded: n.watchdog.required(), watchdog: n.watchdog.found.read(),
	}.bar()
	return now, b, why
}

// barrier is every condition that can keep a node from being a candidate.
type barrier struct {
	eligible   bool // by its config
	asked      bool // the operators' intents are known
	control    election.Control
	drained    *election.Drained // nil: it is not
	forced     bool              // an operator wants this node, drained or not, and whatever the precheck says
	prechecked bool              // the precheck has to have passed
	precheck   fitness
	looked     bool    // this machine is looked at
	lack       fitness // what it lacks to start the service
	hasAgents  bool    // the service's agents are asked
	agents     fitness // what they say
	guarded    bool    // the watchdog has to be armable
	watchdog   fitness
}

// bar is the strongest of them, also in words.
func (b barrier) bar() (role.Bar, string) {
	switch {
	case !b.eligible:
		return role.Ineligible, election.NotEligible
	case !b.asked:
		return role.Unasked, ""
	case b.control.Paused:
		return role.Paused, b.control.Words()
	case b.drained != nil && !b.forced:
		return role.Drained, b.drained.Words()
	case b.looked && !b.lack.known:
		return role.Untested, ""
	case b.lack.why != "":
		return role.Unfit, "it could not start here: " + b.lack.why
	case b.hasAgents && !b.forced && !b.agents.known:
		return role.Untested, ""
	case b.hasAgents && !b.forced && b.agents.why != "":
		return role.Unfit, "it could not start here: " + b.agents.why
	case b.prechecked && !b.forced && !b.precheck.known:
		return role.Untested, ""
	case b.prechecked && !b.forced && b.precheck.why != "":
		return role.Unfit, "precheck: " + b.precheck.why
	case b.guarded && !b.watchdog.known:
		return role.WatchdogUnknown, ""
	case b.guarded && b.watchdog.why != "":
		return role.WatchdogUnarmed, "watchdog: " + b.watchdog.why
	}
	return role.NoBar, ""
}

// given is the newest config of a service, in force or about to be. All its methods are safe.
type given struct {
	news    news
	removed atomic.Bool // the service is not in the config any more

	mu    sync.Mutex // guards the fields below
	conf  Conf
	fresh bool // it is not in force yet
}

func (g *given) get() Conf {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.conf
}

func (g *given) give(c Conf) {
	g.mu.Lock()
	g.conf, g.fresh = c, true
	g.mu.Unlock()
	g.news.wake()
}

// takeFresh returns a config that is not in force yet.
func (g *given) takeFresh() (c Conf, fresh bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	fresh, g.fresh = g.fresh, false
	return g.conf, fresh
}

// news wakes the goroutine that serves, when its inbox has changed. Its capacity is 1.
type news chan struct{}

func newNews() news { return make(news, 1) }

// wake says that there is news.
func (n news) wake() { wait.Poke(n) }

// errNews ends a wait: there is news.
var errNews = errors.New("there is news")

// unless calls await with a context that ends with errNews when there is news. Until that, or the end of ctx, await may take any time.
func (n news) unless(ctx context.Context, await func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	woken := false
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-n:
			woken = true
			cancel(errNews)
		case <-ctx.Done():
		}
	})
	err := await(ctx)
	cancel(nil)
	wg.Wait()
	if woken && !errors.Is(err, errNews) {
		n.wake() // it came too late for this wait, and counts for the next one
	}
	return err
}
