package service

import (
	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/service/role"
	"understudy/supervisor/unit"
)

// inbox is all that a service learns from outside its own goroutine.
type inbox struct {
	news     news
	given    given
	intents  intents
	precheck precheck
	watchdog armable
}

func newInbox(node *Node, c Conf, u *unit.Unit, log hclog.Logger) *inbox {
	n := newNews()
	return &inbox{
		news: n, given: given{news: n, conf: c}, intents: intents{node: node.Self.Node, log: log, news: n},
		precheck: precheck{unit: u, due: make(chan struct{}, 1), found: finding{news: n}, conf: c.Precheck},
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
		eligible: conf.Eligible, asked: known, control: now.Control,
		prechecked: len(conf.Precheck.Exec) > 0 && !n.intents.forces(now.Control), precheck: n.precheck.found.read(),
		guarded: n.watchdog.required(), watchdog: n.watchdog.found.read(),
	}.bar()
	return now, b, why
}

// barrier is every condition that can keep a node from being a candidate.
type barrier struct {
	eligible   bool // by its config
	asked      bool // the operators' intents are known
	control    election.Control
	prechecked bool // the precheck has to have passed
	precheck   fitness
	guarded    bool // the watchdog has to be armable
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
	case b.prechecked && !b.precheck.known:
		return role.Untested, ""
	case b.prechecked && b.precheck.why != "":
		return role.Unfit, "precheck: " + b.precheck.why
	case b.guarded && !b.watchdog.known:
		return role.WatchdogUnknown, ""
	case b.guarded && b.watchdog.why != "":
		return role.WatchdogUnarmed, "watchdog: " + b.watchdog.why
	}
	return role.NoBar, ""
}
