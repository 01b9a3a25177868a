package service

import (
	"context"
	"slices"
	"strings"
	"time"

	"understudy/election"
	"understudy/supervisor/config"
	"understudy/supervisor/service/role"
	"understudy/supervisor/wait"
)

// view is what is shown of a service, here and to the other nodes. It decides nothing.
type view struct {
	since     time.Time       // when the role was taken
	reached   election.Reason // what led to it
	cause     election.Reason // of the newest stop
	condition condition       // of the programs
	ill       string          // what is wrong with them
	note      string          // what the other nodes should know besides
	ready     bool            // the programs run, and have shown that they do their work
	agent     string          // where others reach this node's agent
	halted    bool            // the pause that is in force was logged
	last      election.Member
	says      chan election.Member // what the other nodes should know, newest only
}

func newView() view { return view{says: make(chan election.Member, 1)} }

// condition is how the programs of an active service are.
type condition uint8

const (
	working  condition = iota // they run, and have shown what they have to
	rising                    // they are about to start, or starting
	backing                   // they have failed, and are started again
	unproved                  // they are to be dead, and are not proved to be
)

// enter notes another role.
func (w *view) enter(from, to election.Role, why election.Reason) {
	if to == election.RoleStopping || to == election.RoleStandby {
		w.cause = why
	}
	w.since, w.reached = time.Now().UTC(), why
	w.condition, w.ill = working, ""
	if to == election.RoleActive {
		w.condition = rising
	}
	if from == election.RoleActive || to == election.RoleActive || to == election.RoleOffline {
		w.note = ""
	}
}

// member is what the other nodes should know.
func (v *Service) member() election.Member {
	w := &v.view
	as := v.state.Role()
	m := election.Member{Role: as, Health: election.HealthOK, Why: w.note, Since: w.since, Agent: w.agent, Logs: v.logged()}
	switch as {
	case election.RoleActive:
		m.Health, m.Why = v.wellness()
		m.Token = v.mem.token
	case election.RoleFailed:
		m.Health, m.Why = election.HealthFailed, string(w.cause)
		if v.mem.failure != "" {
			m.Why += ": " + v.mem.failure
		}
	case election.RoleStopping:
		m.Why = string(w.cause)
		switch {
		case w.condition == unproved:
			m.Health, m.Why = election.HealthFailing, w.ill
		case w.note != "":
			m.Health, m.Why = election.HealthFailing, w.note
		case w.cause == election.ChildFailed, w.cause == election.HookFailed:
			m.Health, m.Why = election.HealthFailing, string(w.cause)+": "+v.mem.failure
		}
	case election.RoleStandby:
		if w.note != "" {
			m.Health = election.HealthUnfit
		} else if d := v.demotion(); d != nil {
			m.Demoted, m.Why = d, d.String()
		}
	case election.RoleOffline: // it is announced only while something is left here
		if v.undead.seen != "" {
			m.Role, m.Health, m.Why = election.RoleStandby, election.HealthUnfit, v.undead.seen
		}
	}
	return m
}

// logged tells whether any program's output is in a file, where `understudy logs` finds it.
func (v *Service) logged() bool {
	return slices.ContainsFunc(v.conf.Processes, func(p config.Process) bool { return p.Log.File != "" })
}

// wellness is what an active service says of its programs. A check speaks of what runs only.
func (v *Service) wellness() (health election.Health, why string) {
	told := look(&v.inbox, func() programs { return v.inbox.programs })
	c := v.inbox.control()
	switch {
	case v.view.condition == backing, v.view.condition == unproved:
		return election.HealthFailing, v.view.ill
	case v.view.condition == rising:
		health, why = election.HealthStarting, v.view.ill
	case told.health != "":
		return election.HealthFailing, told.health
	default:
		health = election.HealthOK
	}
	var all []string
	switch {
	case why != "":
		return health, why
	case c.Paused:
		all = append(all, c.Words())
	}
	if told.astray != "" {
		all = append(all, told.astray)
	}
	return health, strings.Join(all, "; ")
}

// Show tells the observer how a service stands that has only been made.
func (v *Service) Show() { v.show() }

// show tells the observer how the service stands.
func (v *Service) show() {
	m := v.member()
	s := State{
		Service: v.name, Role: m.Role, Reason: v.view.reached, Since: v.view.since, Ready: v.view.ready, Health: m.Health, Why: m.Why,
		Token: v.mem.token,
	}
	if v.state.Role() == election.RoleActive {
		s.By = election.Proof(v.mem.fenced)
	}
	v.node.Observer.State(s)
}

// say leaves for announce what the other nodes should know, and shows it here.
func (v *Service) say() {
	v.show()
	m := v.member()
	v.view.last = m
	for {
		select {
		case v.view.says <- m:
			return
		case <-v.view.says:
		}
	}
}

// tell says what the other nodes should know, if it is not what was said last.
func (v *Service) tell() {
	was, now := v.view.last, v.member()
	if now.Role != was.Role || now.Health != was.Health || now.Why != was.Why {
		v.say()
	}
}

// ails says how the programs are.
func (v *Service) ails(c condition, why string) {
	v.view.condition, v.view.ill = c, why
	v.tell()
}

// makeReady notes whether the programs are ready, which is for those who look at this node only.
func (v *Service) makeReady(ready bool) {
	if v.view.ready != ready {
		v.view.ready = ready
		v.show()
	}
}

// tellBar shows why this node is no candidate, or that it is one.
func (v *Service) tellBar(bar role.Bar, why string) {
	if v.view.note == why {
		return
	}
	v.view.note = why
	paused := v.state.Bar == role.Paused
	switch {
	case bar == role.Paused && paused: // in other words
		v.tell()
		return
	case bar == role.Paused, bar == role.NoBar && paused: // the role says so, which is about to be another one
		return
	case bar == role.NoBar:
		v.log.Info("standing for election again", "service", v.name)
	default:
		v.log.Warn("not standing for election", "service", v.name, "why", why)
	}
	if !paused {
		v.say()
	}
}

// tellPause logs that a pause has begun or ended while this node is active.
func (v *Service) tellPause() {
	c := v.inbox.control()
	if v.view.halted != c.Paused {
		if v.view.halted = c.Paused; v.view.halted {
			v.log.Info("paused: it goes on here, and nobody else is promoted", "service", v.name, "why", c.Words())
		} else {
			v.log.Info("not paused any more", "service", v.name)
		}
	}
	v.tell()
}

// settling is how long a role has to last before it is announced: a hand-over passes through several, and the writes would
// stand in its way.
const settling = 50 * time.Millisecond

// announce keeps members/<node> current.
func (v *Service) announce(ctx context.Context, cand *election.Candidate) {
	says := v.view.says
	for {
		select {
		case m := <-says:
			if !wait.For(ctx, settling) {
				return
			}
			select {
			case m = <-says:
			default:
			}
			if err := cand.Members.Announce(ctx, m); err != nil && ctx.Err() == nil {
				v.log.Debug("cannot announce", "service", v.name, "error", err)
				select {
				case says <- m:
				default: // there is a newer one
				}
				if !wait.For(ctx, time.Second) {
					return
				}
			}
		case <-ctx.Done():
			return
		}
	}
}
