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

// obstacle returns what keeps this node from being a candidate, also in words, and the intents that it is based on.
func (n *inbox) obstacle(conf Conf) (election.Intents, role.Obstacle, string) {
	now, known := n.intents.read()
	strongest, why := obstacles{
		eligible: conf.Eligible, asked: known, control: now.Control, drained: now.Drained, forced: n.intents.forces(now.Control),
		prechecked: len(conf.Precheck.Exec) > 0, precheck: n.precheck.found.read(),
		looked: n.precheck.lacks != nil, lack: n.precheck.lack.read(),
		hasAgents: len(probesOf(conf.Service)) > 0, agents: n.precheck.probed.read(),
		guarded: n.watchdog.required(), watchdog: n.watchdog.found.read(),
	}.strongest()
	return now, strongest, why
}

// obstacles are the conditions that can keep a node from being a candidate.
type obstacles struct {
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

// strongest is the strongest of them, also in words.
func (o obstacles) strongest() (role.Obstacle, string) {
	switch {
	case !o.eligible:
		return role.Ineligible, election.NotEligible
	case !o.asked:
		return role.OrdersUnknown, ""
	case o.control.Paused:
		return role.Paused, o.control.Words()
	case o.drained != nil && !o.forced:
		return role.Drained, o.drained.Words()
	case o.looked && !o.lack.known:
		return role.PrecheckUnknown, ""
	case o.lack.why != "":
		return role.CannotStart, "it could not start here: " + o.lack.why
	case o.hasAgents && !o.forced && !o.agents.known:
		return role.PrecheckUnknown, ""
	case o.hasAgents && !o.forced && o.agents.why != "":
		return role.CannotStart, "it could not start here: " + o.agents.why
	case o.prechecked && !o.forced && !o.precheck.known:
		return role.PrecheckUnknown, ""
	case o.prechecked && !o.forced && o.precheck.why != "":
		return role.CannotStart, "precheck: " + o.precheck.why
	case o.guarded && !o.watchdog.known:
		return role.WatchdogUnknown, ""
	case o.guarded && o.watchdog.why != "":
		return role.WatchdogUnarmed, "watchdog: " + o.watchdog.why
	}
	return role.NoObstacle, ""
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
