package service

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/config"
	"understudy/supervisor/control"
	"understudy/supervisor/replica"
	"understudy/supervisor/service/role"
)

// view shows a service, here and to the other nodes. It decides nothing.
type view struct {
	service        string
	observer       Observer
	log            hclog.Logger
	conf           *Conf // as it is in force
	mem            *memory
	unprovedTree   *unprovedTree
	pendingEffects func() string                 // what is not undone, in words; "": nothing
	follows        func(control.ReadWish) string // nil: the service is not replicated
	fails          func() string                 // why the copy here could not be promoted soon; "": that is not known
	copy           func() control.CopyStatus
	intents        *intents

	shown          shownRole
	previous       shownRole // the role before this one
	upgraded       bool      // previous is from before an upgrade: the same role after it is no new one
	wellness       wellness
	note           string     // a further fact for the other nodes
	neverCandidate bool       // by its config it is no candidate
	unpromoted     string     // why no copy of a replicated service is promoted
	ready          bool       // the programs run and are ready
	agent          string     // where others reach this node's agent
	retry          *time.Time // when this node tries again after a failure

	announcer announcer
	announced election.Member // the newest
}

// shownRole is the shown role.
type shownRole struct {
	role  election.Role
	since time.Time
	why   election.Reason
}

func newView(v *Service) view {
	return view{
		service: v.name, observer: v.node.Observer, log: v.log, conf: &v.conf, mem: &v.mem, unprovedTree: &v.unprovedTree,
		pendingEffects: v.unit.NotUndone, intents: &v.inbox.intents,
		fails: func() string { return "" }, shown: shownRole{role: election.RoleOffline}, wellness: wellness{news: v.inbox.news},
		announcer: newAnnouncer(v.log, func() { v.node.Observer.Announced(v.name) }),
	}
}

// enter notes a new role.
func (w *view) enter(to election.Role, why election.Reason) {
	from := w.shown.role
	if to == election.RoleStopping || to == election.RoleStandby {
		w.mem.lastTerm.cause = why
	}
	now := shownRole{to, time.Now().UTC(), why}
	if w.upgraded && to == w.previous.role {
		now.since = w.previous.since
	}
	w.shown, w.previous, w.upgraded, w.retry = now, w.shown, false, nil
	w.wellness.are(working, "")
	if to == election.RoleActive {
		w.wellness.are(rising, "")
	}
	if from == election.RoleActive || to == election.RoleActive || to == election.RoleOffline {
		w.note = ""
	}
}

// member is this node's entry for the other nodes.
func (w *view) member() election.Member {
	last := w.mem.lastTerm
	m := election.Member{
		Role: w.shown.role, Health: election.HealthOK, Why: w.note, Since: w.shown.since, Agent: w.agent,
		Logs: w.logged(), Unlogged: w.wellness.output(), Spread: w.conf.Spread, Warm: w.conf.Warm != nil,
	}
	switch w.shown.role {
	case election.RoleActive:
		m.Health, m.Why = w.wellness.of(w.intents.control())
		m.Token, m.Restarts, m.Exit, m.Exited = last.token, last.restarts, last.exit, last.exited
	case election.RoleFailed:
		m.Health, m.Why, m.Cause = election.HealthFailed, last.why(), last.cause
		m.Exit, m.Exited, m.Retry = last.exit, last.exited, w.retry
	case election.RoleStopping:
		m.Why = string(last.cause)
		switch {
		case w.wellness.condition == unproved:
			m.Health, m.Why = election.HealthFailing, w.wellness.ill
		case w.pendingEffects() != "":
			m.Health, m.Why = election.HealthFailing, w.pendingEffects()
		case w.note != "":
			m.Health, m.Why = election.HealthFailing, w.note
		case last.cause == election.ChildFailed, last.cause == election.HookFailed:
			m.Health, m.Why = election.HealthFailing, last.why()
		}
	case election.RoleStandby:
		if w.note != "" {
			m.Health, m.Never = election.HealthUnfit, w.neverCandidate
		} else if why := w.fails(); why != "" {
			m.Health, m.Why = election.HealthUnfit, why
		} else if w.unpromoted != "" {
			m.Why = w.unpromoted
		} else if d := w.mem.preference.demotion(time.Now()); d != nil {
			m.Demoted, m.Why = d, d.String()
		}
	case election.RoleOffline: // it is announced only while something is left here
		if why := cmp.Or(w.unprovedTree.seen, w.pendingEffects()); why != "" {
			m.Role, m.Health, m.Why = election.RoleStandby, election.HealthUnfit, why
		}
	}
	return m
}

// logged reports whether any program's output goes to a file, where `understudy logs` finds it.
func (w *view) logged() bool {
	return slices.ContainsFunc(w.conf.Processes, func(p config.Process) bool { return p.Log.File != "" })
}

// show tells the observer the state of the service.
func (w *view) show() {
	m := w.member()
	s := control.LocalStatus{
		Service: w.service, Role: m.Role, Reason: w.shown.why, Since: w.shown.since, Ready: w.ready, Health: m.Health, Why: m.Why,
		Token: w.mem.lastTerm.token, Follows: w.follows, Copy: w.copy,
	}
	if w.shown.role == election.RoleActive {
		s.By = election.Proof(w.mem.lastTerm.fenced)
	}
	w.observer.State(s)
}

// announce announces this node's entry to the other nodes, and shows it here.
func (w *view) announce() {
	w.show()
	w.announced = w.member()
	w.announcer.queue(w.announced)
}

// announceChange is announce, if the entry has changed.
func (w *view) announceChange() {
	was, now := w.announced, w.member()
	if now.Role != was.Role || now.Health != was.Health || now.Why != was.Why || now.Unlogged != was.Unlogged {
		w.announce()
	}
}

// showCondition describes the programs' condition.
func (w *view) showCondition(c condition, why string) {
	w.wellness.are(c, why)
	w.announceChange()
}

// showBackOff shows until when this node leaves the lock to others.
func (w *view) showBackOff(d time.Duration) {
	until := time.Now().Add(d).UTC()
	w.retry = &until
	w.announce()
}

// showStart notes that programs run, or are about to start.
func (w *view) showStart(c condition) {
	w.wellness.forgetRun()
	w.wellness.are(c, "")
	w.note = ""
	w.announce()
}

// showReady notes whether the programs are ready, which only this node shows.
func (w *view) showReady(ready bool) {
	if w.ready != ready {
		w.ready = ready
		w.show()
	}
}

// showObstacle shows why this node is no candidate, or that it is one.
func (w *view) showObstacle(obstacle role.Obstacle, why string) {
	w.neverCandidate = obstacle == role.Ineligible
	if w.note == why {
		return
	}
	w.note = why
	paused := w.shown.role == election.RolePaused
	switch {
	case obstacle == role.Paused && paused: // in other words
		w.announceChange()
		return
	case obstacle == role.Paused, obstacle == role.NoObstacle && paused: // the role, which is about to change, says so
		return
	case obstacle == role.NoObstacle:
		w.log.Info("this node can take the service")
	case strings.HasPrefix(why, replica.Starting+", "): // that was logged without the reason
	case why == replica.Starting:
		w.log.Info("this node can take the service once its program is ready")
	default:
		w.log.Warn("this node cannot take the service", "why", why)
	}
	if !paused {
		w.announce()
	}
}
