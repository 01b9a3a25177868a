package service

import (
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/config"
	"understudy/supervisor/service/role"
)

// view is what is shown of a service, here and to the other nodes. It decides nothing.
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
	note     string // what the other nodes should know besides
	ready    bool   // the programs run, and have shown that they work
	agent    string // where others reach this node's agent
	halted   bool   // the pause that is in force was logged

	announcer announcer
	last      election.Member // that was announced
}

// taken is the role that is shown.
type taken struct {
	role  election.Role
	since time.Time
	why   election.Reason // what led to it
}

func newView(v *Service) view {
	return view{
		service: v.name, observer: v.node.Observer, log: v.log, conf: &v.conf, mem: &v.mem, undead: &v.local.undead, intents: &v.inbox.intents,
		taken: taken{role: election.RoleOffline}, wellness: wellness{news: v.inbox.news}, announcer: newAnnouncer(v.log),
	}
}

// enter notes another role.
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

// member is what the other nodes should know.
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
	case election.RoleOffline: // it is announced only while something is left here
		if w.undead.seen != "" {
			m.Role, m.Health, m.Why = election.RoleStandby, election.HealthUnfit, w.undead.seen
		}
	}
	return m
}

// logged tells whether any program's output is in a file, where `understudy logs` finds it.
func (w *view) logged() bool {
	return slices.ContainsFunc(w.conf.Processes, func(p config.Process) bool { return p.Log.File != "" })
}

// show tells the observer how the service is.
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

// say announces what the other nodes should know, and shows it here.
func (w *view) say() {
	w.show()
	w.last = w.member()
	w.announcer.say(w.last)
}

// tell is say, if that differs from what was said last.
func (w *view) tell() {
	was, now := w.last, w.member()
	if now.Role != was.Role || now.Health != was.Health || now.Why != was.Why {
		w.say()
	}
}

// remark notes what the other nodes should know besides; "": nothing. It does not say it yet.
func (w *view) remark(note string) { w.note = note }

// at notes where others reach this node's agent.
func (w *view) at(agent string) { w.agent = agent }

// ails says how the programs are.
func (w *view) ails(c condition, why string) {
	w.wellness.are(c, why)
	w.tell()
}

// begins says that programs run, or are about to start.
func (w *view) begins(c condition) {
	w.wellness.begin()
	w.wellness.are(c, "")
	w.remark("")
	w.say()
}

// makeReady notes whether the programs are ready, which only those who look at this node are told.
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
