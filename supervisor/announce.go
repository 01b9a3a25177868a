package supervisor

import (
	"context"
	"slices"
	"time"

	"understudy/election"
	"understudy/supervisor/config"
)

// member is what the other nodes should know.
func (v *service) member() election.Member {
	m := election.Member{Role: v.state.role.String(), Health: healthy, Why: v.note, Since: v.since, Agent: v.agentAt, Logs: v.logged()}
	switch v.state.role {
	case Active:
		m.Health, m.Why = v.wellness()
		m.Token = v.token
	case Failed:
		m.Health, m.Why = exhausted, v.cause.String()
		if v.failure != "" {
			m.Why += ": " + v.failure
		}
	case Stopping:
		m.Why = v.cause.String()
		switch {
		case v.condition == unproved:
			m.Health, m.Why = ailing, v.ill
		case v.note != "":
			m.Health, m.Why = ailing, v.note
		case v.cause == childFailed, v.cause == hookFailed:
			m.Health, m.Why = ailing, v.cause.String()+": "+v.failure
		}
	case Standby:
		if v.note != "" {
			m.Health = unfitness
		} else if d := v.demotion(); d != nil {
			m.Demoted, m.Why = d, d.String()
		}
	case Offline: // it is announced only while something is left here
		if v.alive != "" {
			m.Role, m.Health, m.Why = Standby.String(), unfitness, v.alive
		}
	}
	return m
}

// logged tells whether any program's output is in a file, where `understudy logs` finds it.
func (v *service) logged() bool {
	return slices.ContainsFunc(v.Processes, func(p config.Process) bool { return p.Log.File != "" })
}

// say leaves for announce what the other nodes should know, and shows it here.
func (v *service) say() {
	v.show()
	m := v.member()
	v.last = m
	for {
		select {
		case v.says <- m:
			return
		case <-v.says:
		}
	}
}

// tell says what the other nodes should know, if it is not what was said last.
func (v *service) tell() {
	if now := v.member(); now.Role != v.last.Role || now.Health != v.last.Health || now.Why != v.last.Why {
		v.say()
	}
}

// settling is how long a role has to last before it is announced: a hand-over passes through several, and the writes would
// stand in its way.
const settling = 50 * time.Millisecond

// announce keeps members/<node> current.
func (v *service) announce(ctx context.Context, cand *election.Candidate) {
	for {
		select {
		case m := <-v.says:
			if !pause(ctx, settling) {
				return
			}
			select {
			case m = <-v.says:
			default:
			}
			if err := cand.Announce(ctx, m); err != nil && ctx.Err() == nil {
				v.log.Debug("cannot announce", "service", v.name, "error", err)
				v.tellAgain(m)
				if !pause(ctx, time.Second) {
					return
				}
			}
		case <-ctx.Done():
			return
		}
	}
}

// tellAgain keeps a message that could not be written, unless there is a newer one.
func (v *service) tellAgain(m election.Member) {
	select {
	case v.says <- m:
	default:
	}
}
