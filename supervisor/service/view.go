package service

import (
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/config"
	"understudy/supervisor/service/role"
)

// view shows a service, here and to the other nodes. It decides nothing.
type view struct {
	service  string
	observer Observer
	log      hclog.Logger
	conf     *Conf // as it is in force
	mem      *memory
	undead   *undead
	intents  *intents

	taken    taken
	wellness wellness
	note     string // a further fact for the other nodes
	ready    bool   // the programs run and are ready
	agent    string // where others reach this node's agent
	halted   bool   // whether the present pause was logged

	announcer announcer
	last      election.Member // that was announced
}

// taken is the shown role.
type taken struct {
	role  election.Role
	since time.Time
	why   election.Reason // the reason
}

func newView(v *Service) view {
	return view{
		service: v.name, observer: v.node.Observer, log: v.log, conf: &v.conf, mem: &v.mem, undead: &v.local.undead, intents: &v.inbox.intents,
		taken: taken{role: election.RoleOffline}, wellness: wellness{news: v.inbox.news}, announcer: newAnnouncer(v.log),
	}
}

// enter notes a new role.
func (w *view) enter(to election.Role, why election.Reason) {
	from := w.taken.role
	if to == election.RoleStopping || to == election.RoleStandby {
		w.mem.story.stopped(why)
	}
	w.taken = taken{to, time.Now().UTC(), why}
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
	story := w.mem.story
	m := election.Member{Role: w.taken.role, Health: election.HealthOK, Why: w.note, Since: w.taken.since, Agent: w.agent, Logs: w.logged()}
	switch w.taken.role {
	case election.RoleActive:
		m.Health, m.Why = w.wellness.of(w.intents.control())
		m.Token = story.token
	case election.RoleFailed:
		m.Health, m.Why = election.HealthFailed, string(story.cause)
		if story.failure != "" {
			m.Why += ": " + story.failure
		}
	case election.RoleStopping:
		m.Why = string(story.cause)
		switch {
		case w.wellness.condition == unproved:
			m.Health, m.Why = election.HealthFailing, w.wellness.ill
		case w.note != "":
			m.Health, m.Why = election.HealthFailing, w.note
		case story.cause == election.ChildFailed, story.cause == election.HookFailed:
			m.Health, m.Why = election.HealthFailing, string(story.cause)+": "+story.failure
		}
	case election.RoleStandby:
		if w.note != "" {
			m.Health = election.HealthUnfit
		} else if d := w.mem.preference.demotion(time.Now()); d != nil {
			m.Demoted, m.Why = d, d.String()
		}
	case election.RoleOffline: // it is announced only while processes are left here
		if w.undead.seen != "" {
			m.Role, m.Health, m.Why = election.RoleStandby, election.HealthUnfit, w.undead.seen
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
	s := State{
		Service: w.service, Role: m.Role, Reason: w.taken.why, Since: w.taken.since, Ready: w.ready, Health: m.Health, Why: m.Why,
		Token: w.mem.story.token,
	}
	if w.taken.role == election.RoleActive {
		s.By = election.Proof(w.mem.story.fenced)
	}
	w.observer.State(s)
}

// say announces this node's entry to the other nodes, and shows it here.
func (w *view) say() {
	w.show()
	w.last = w.member()
	w.announcer.say(w.last)
}

// tell is say, if the entry has changed.
func (w *view) tell() {
	was, now := w.last, w.member()
	if now.Role != was.Role || now.Health != was.Health || now.Why != was.Why {
		w.say()
	}
}

// remark notes a further fact for the other nodes; "": none. It does not announce it yet.
func (w *view) remark(note string) { w.note = note }

// at notes where others reach this node's agent.
func (w *view) at(agent string) { w.agent = agent }

// ails describes the programs' condition.
func (w *view) ails(c condition, why string) {
	w.wellness.are(c, why)
	w.tell()
}

// begins notes that programs run, or are about to start.
func (w *view) begins(c condition) {
	w.wellness.begin()
	w.wellness.are(c, "")
	w.remark("")
	w.say()
}

// makeReady notes whether the programs are ready, which only this node shows.
func (w *view) makeReady(ready bool) {
	if w.ready != ready {
		w.ready = ready
		w.show()
	}
}

// tellBar shows why this node is no candidate, or that it is one.
func (w *view) tellBar(bar role.Bar, why string) {
	if w.note == why {
		return
	}
	w.note = why
	paused := w.taken.role == election.RolePaused
	switch {
	case bar == role.Paused && paused: // in other words
		w.tell()
		return
	case bar == role.Paused, bar == role.NoBar && paused: // the role, which is about to change, says so
		return
	case bar == role.NoBar:
		w.log.Info("a candidate again")
	default:
		w.log.Warn("not a candidate", "why", why)
	}
	if !paused {
		w.say()
	}
}

// tellPause logs that a pause has begun or ended while this node is active.
func (w *view) tellPause() {
	c := w.intents.control()
	if w.halted != c.Paused {
		if w.halted = c.Paused; w.halted {
			w.log.Info("paused: it goes on here, and nobody else is promoted", "why", c.Words())
		} else {
			w.log.Info("not paused any more")
		}
	}
	w.tell()
}
