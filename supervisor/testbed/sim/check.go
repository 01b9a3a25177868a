package sim

import (
	"fmt"
	"time"

	"understudy/election"
)

const root = "/understudy"

// Violation is a promise that was broken.
type Violation struct {
	Promise string
	At      time.Duration
	What    string
}

func (v Violation) String() string {
	return fmt.Sprintf("%s broken at %.6fs: %s", v.Promise, v.At.Seconds(), v.What)
}

// checker knows each living process and what ZooKeeper says, and looks at the promises whenever either changes.
// World.mu guards it.
type checker struct {
	w         *world
	services  map[string]*serviceView
	sessions  sessionsView
	first     *Violation
	calm      bool
	tally     tally
	sight     sight
	hand      handView
	watchdogs watchdogsView
	orphans   orphansView
	effects   effectsView
	drains    drainsView
	steps     stepsView
	waits     map[string]time.Time // by node and service: when it began to wait because data was lost
}

// tally counts what happened.
type tally struct {
	starts    int
	doomed    int // starts beside a process that was killed, but held by the kernel
	leftovers int // that breadcrumbs told of
	outlasting
	cover Coverage
}

// serviceView is a service as the checker sees it.
type serviceView struct {
	name        string
	living      map[*proc]struct{}
	lock        lockView
	crumb       crumbView
	overwritten crumbView                  // what it was when all data was lost or set back
	setBack     bool                       // so it was
	token       int64                      // the newest that a process was started with
	next        map[int64]int64            // the token whose programs were the next to start
	newest      int64                      // the newest claim
	struck      map[int64]bool             // tokens of activations whose lock or breadcrumb an operator removed by hand
	runs        int                        // main processes that were started
	paused      bool                       // by an operator
	orders      orders                     // what operators want of it
	members     map[string]election.Member // what each node says of itself
	moving      time.Time                  // when a node last said that it stops it
	claims      int                        // of the lock, since all is calm
	ends        map[int64]string           // why activations ended, as the history has it
	history     map[string]election.Activation
	died        map[int64]death     // of the last process of each token
	undid       map[int64]time.Time // when each token's last undo ended
	left        map[int64]bool      // that one failed
	taken       map[string]int      // how often each node took the lock
	znodes      map[string]bool     // all that there is of it
	deleted     int                 // how often all of it was deleted
	forgets     int                 // how often an operator was about to have all of it forgotten
	sworn       map[treeID]bool     // of which an operator says that it is dead, and it is not
	oath        map[int64]bool      // tokens of what lived when the breadcrumb went on his word
	unknown     bool                // once when a supervisor could not know it, which then starts beside what runs
}

type lockView struct {
	there bool
	owner int64
	czxid int64
	token int64 // of its activation: the czxid, unless it was taken again
}

type crumbView struct {
	there    bool
	node     string
	session  string
	promised time.Duration // that any promise of its term binds
	tree     treeID
	// failsafe says who has to promise, should ZooKeeper be gone; nil: it may not outlast that.
	failsafe *election.Failsafe
	// leftover says that something of the tree is known to be alive: no delay is a proof.
	leftover bool
	// left says the same of effects.
	left bool
}

func newChecker(w *world) *checker {
	c := &checker{
		w: w, services: map[string]*serviceView{}, sessions: newSessionsView(),
		waits: map[string]time.Time{}, tally: tally{cover: Coverage{}, outlasting: outlasting{heard: map[string]bool{}}}, drains: drainsView{}, hand: handView{byHand: map[string]int{}, late: map[int64][]string{}},
	}
	c.sight = newSight(c)
	c.watchdogs, c.orphans = watchdogsView{checker: c}, orphansView{c}
	c.effects = newEffectsView(c)
	c.steps = newStepsView(c)
	for _, name := range w.plan.services() {
		c.services[name] = &serviceView{
			name: name, living: map[*proc]struct{}{}, struck: map[int64]bool{}, next: map[int64]int64{}, members: map[string]election.Member{}, ends: map[int64]string{}, history: map[string]election.Activation{}, died: map[int64]death{}, undid: map[int64]time.Time{}, left: map[int64]bool{}, taken: map[string]int{},
			znodes: map[string]bool{}, sworn: map[treeID]bool{}, oath: map[int64]bool{},
		}
	}
	return c
}

func (c *checker) broken(promise, format string, args ...any) {
	v := &Violation{promise, time.Since(c.w.began), fmt.Sprintf(format, args...)}
	c.w.say("VIOLATION: %v", v)
	if c.first == nil {
		c.first = v
	}
}

func (p *proc) String() string {
	kind := "process"
	if !p.main {
		kind = "descendant"
	}
	return fmt.Sprintf("%s %d of %s on %s, token %d, session %s", kind, p.pid, p.tree.service, p.tree.node, p.token,
		election.SessionName(p.tree.session))
}

// started looks at P1, the order of tokens, and P5.
func (c *checker) started(p *proc) {
	c.effects.undoing(p)
	c.effects.begins(p)
	if p.tree.aside != "" || p.checksFollower() {
		return
	}
	v := c.services[p.tree.service]
	c.steps.started(p)
	c.effects.started(p)
	if p.main {
		c.w.say("%s: START %v", p.tree.node, p)
		delete(c.tally.heard, p.tree.node)
		v.runs++
		c.tally.starts++
		if c.w.plan.Watchdog == watchdogRequired && !c.w.nodes[c.w.indexOf(p.tree.node)].watchdog.counting {
			c.broken("watchdog", "%v started, and no watchdog counts", p)
		}
		if c.w.indexOf(p.tree.node) == c.w.plan.Ineligible {
			c.broken("eligible", "%v started on a node that is not eligible", p)
		}
	}
	for _, other := range inOrder(v.living) {
		switch {
		case other.tree == p.tree && !p.main, v.unknown && v.struck[other.token]:
		case v.oath[other.token], v.oath[p.token]:
			c.w.say("%v starts beside %v, by an operator's word", p, other)
		case c.spared(v, other):
			c.tally.doomed++ // nobody can know, but for its own machine: see crumbChanged
		default:
			c.broken("P1", "%v started while %v was alive", p, other)
		}
	}
	v.living[p] = struct{}{}
	if c.sessions.lost[p.tree.session] {
		return
	}
	if p.token < v.token && !v.oath[p.token] {
		c.broken("token order", "%v started after token %d", p, v.token)
	}
	if p.token > v.token {
		v.next[v.token], v.token = p.token, p.token
	}
	if v.struck[p.token] {
		return
	}
	switch {
	case (!v.lock.there || v.lock.owner != p.tree.session || v.lock.token != p.token) && !c.sight.mayOutlast(v, p) && !c.sessions.endedByStranger(p.tree.session):
		c.broken("P5", "%v started, but the lock is %+v", p, v.lock)
	case !v.crumb.there || v.crumb.session != election.SessionName(p.tree.session) || v.crumb.tree != p.tree.id:
		c.broken("P5", "%v started, but the breadcrumb is %+v", p, v.crumb)
	}
}

func (c *checker) gone(p *proc) {
	c.effects.ended(p)
	if p.tree.aside != "" || p.checksFollower() {
		return
	}
	v := c.services[p.tree.service]
	c.steps.gone(p)
	delete(v.living, p)
	if p.undoes() {
		v.undid[p.token], v.left[p.token] = time.Now(), p.status.Code != 0
	} else {
		v.died[p.token] = v.died[p.token].or(p)
	}
	c.dropped(v, p)
	if p.main {
		c.w.say("%s: END %v", p.tree.node, p)
		if c.calm && !c.w.operator.settings[v.name].outdates(p) { // P7 is the other services' when the command changes
			c.broken("P7", "%v ended", p)
		}
	}
}

// strike notes that an operator removes something of a service by hand.
func (c *checker) strike(v *serviceView) {
	c.effects.strike(v.name)
	v.struck[v.lock.token] = true
	v.struck[v.token] = true // nothing of it may be alive just now, as between a crash and the next start
	for p := range v.living {
		v.struck[p.token] = true
	}
}

// wiped notes that ZooKeeper has lost its data: what a node goes on with under a lease of before has a token of before.
func (c *checker) wiped() {
	c.w.copies.wiped++
	c.steps.Lost()
	c.sessions.wiped()
	for _, v := range c.services {
		c.effects.strike(v.name)
		if v.crumb.there {
			v.overwritten = v.crumb
		}
		v.lock, v.crumb, v.token, v.newest, v.paused, v.orders = lockView{}, crumbView{}, 0, 0, false, orders{}
		clear(v.members)
		clear(v.znodes)
		clear(v.history)
		clear(v.died)
		clear(v.undid)
		clear(v.left)
	}
	clear(c.drains)
}

// running tells whether a service runs as it should: one main process, its node holding the lock.
func (c *checker) running(service string) bool {
	v := c.services[service]
	for p := range v.living {
		if p.main && !p.killed && v.lock.there && v.lock.owner == p.tree.session {
			return true
		}
	}
	return false
}

// runsOn tells whether a service runs on a node.
func (c *checker) runsOn(service, node string) bool {
	for p := range c.services[service].living {
		if p.tree.node == node {
			return true
		}
	}
	return false
}
