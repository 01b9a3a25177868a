package config

import (
	"syscall"
	"time"
)

// settings checks all of a service but whether it has a command: defaults need none.
func (v *validator) settings(p path, w written) {
	if len(w.Processes) > 0 {
		v.processes(p, w)
	} else {
		v.program(p, w.Program)
		v.ready(p.key("ready"), w.Ready)
	}
	s := w.Service
	v.choice(p.key("election"), string(s.Election), s.Election)
	v.choice(p.key("contain"), string(s.Contain), s.Contain)
	v.between(p.key("priority"), &s.Priority, -1_000_000, 1_000_000)
	v.moves(p.key("moves"), s.Moves)
	v.notNegative(p.key("grace_delay"), s.GraceDelay)
	v.failsafe(p.key("on_zookeeper_loss"), s.OnLoss)
	v.reloadSignal(p.key("reload_signal"), syscall.Signal(s.ReloadSignal))
	v.restart(p.key("restart"), s.Restart)
	v.health(p.key("health"), s.Health)
	v.precheck(p.key("precheck"), s.Precheck)
	v.hooks(p.key("hooks"), s.Hooks)
	v.fencing(p.key("fencing"), s.Fencing)
	v.slowness(p, w)
	if s.Fencing.OnFailure == OnFailureGrace && s.GraceDelay == 0 {
		v.doubt([]path{p.key("grace_delay"), p.key("fencing").key("on_failure")},
			"nothing is waited for when fencing failed: on_failure is grace and grace_delay is 0s")
	}
	if !s.Eligible && s.Failback {
		v.doubt([]path{p.key("failback"), p.key("eligible")}, "has no effect: a node with eligible: false never takes the service")
	}
}

// processes checks each one, and what they have to be together.
func (v *validator) processes(p path, w written) {
	if way := w.Ready.Way(); way != "" && v.given(p.key("ready").key(way)) {
		v.fault(p.key("ready").key(way), "does not go with processes: say it of one of them")
	}
	if w.Log.File != "" && v.given(p.key("log").key("file")) {
		v.fault(p.key("log").key("file"), "does not go with processes: say it of one of them")
	}
	names := map[string]int{}
	for i, process := range w.Processes {
		at := p.key("processes").item(i)
		v.process(at, process)
		if j, twice := names[process.Name]; twice && process.Name != "" {
			v.fault(at.key("name"), "%s is the name of item %d too", quoted(process.Name), j)
		}
		names[process.Name] = i
	}
}

func (v *validator) process(p path, process Process) {
	switch message := nameFault(process.Name); {
	case process.Name == "" && !v.given(p.key("name")):
		v.fault(p.key("name"), "missing: each process has a name of its own")
	case message != "":
		v.fault(p.key("name"), "%s", message)
	}
	if len(process.Command) == 0 {
		v.fault(p.key("command"), "missing: say which program to run")
	}
	v.program(p, process.Program)
	undo, ready := p.key("undo"), p.key("ready")
	v.notEmpty(undo, process.Undo)
	if !process.Oneshot {
		if len(process.Undo) > 0 {
			v.ratio([]path{undo, p.key("oneshot")}, "goes with oneshot: true only: what keeps running is stopped by stop_signal")
		}
		v.ready(ready, process.Ready)
		return
	}
	if way := process.Ready.Way(); way != "" {
		v.fault(ready.key(way), "does not go with oneshot: a oneshot is ready once it has ended; only timeout may be given")
		return
	}
	v.notNegative(ready.key("timeout"), process.Ready.Timeout)
}

func (v *validator) moves(p path, m Moves) {
	if m.Max < 0 || m.Max > mostFailures {
		v.fault(p.key("max"), "%d is not a number from 1 to %d, or 0 for no bound", m.Max, mostFailures)
	}
	if m.Max > 0 {
		v.positive(p.key("within"), m.Within)
	} else {
		v.notNegative(p.key("within"), m.Within)
	}
}

// mostFailures bounds give_up_after; more would never be reached.
const mostFailures = 10_000

func (v *validator) restart(p path, r Restart) {
	delay, maxDelay, within := p.key("delay"), p.key("max_delay"), p.key("within")
	v.choice(p.key("policy"), string(r.Policy), r.Policy)
	sound := v.notNegative(delay, r.Delay)
	sound = v.notNegative(maxDelay, r.MaxDelay) && sound
	sound = v.notNegative(within, r.Within) && sound
	v.notNegative(p.key("rejoin_after"), r.RejoinAfter)
	if r.GiveUpAfter < 0 || r.GiveUpAfter > mostFailures {
		v.fault(p.key("give_up_after"), "%d is not a number from 1 to %d, or 0 for never", r.GiveUpAfter, mostFailures)
		return
	}
	if !sound || r.Policy == RestartNever {
		return
	}
	if r.MaxDelay < r.Delay {
		v.ratio([]path{maxDelay, delay}, "max_delay %v is shorter than delay %v", r.MaxDelay, r.Delay)
		return
	}
	if r.GiveUpAfter == 0 {
		return
	}
	if least := r.spread(0); least > 0 && least >= r.Within {
		v.ratio([]path{within, delay, p.key("give_up_after")},
			"%d failures with the delays between them take %v or more (%s), so within %v the service would never give up: "+
				"make within longer, or delay or give_up_after smaller",
			r.GiveUpAfter, least, r.sum(0), r.Within)
	} else if r.Within == 0 {
		v.fault(within, "must be positive")
	}
}

func (v *validator) hooks(p path, h Hooks) {
	for i, hook := range h.all() {
		at := p.key(hookNames[i])
		v.notEmpty(at.key("command"), hook.Command)
		if len(hook.Command) > 0 {
			v.positive(at.key("timeout"), hook.Timeout)
		}
	}
}

// spread is the least time from the first to the last of the failures that make a service give up, when each takes as
// long as one alone to be noticed.
func (r Restart) spread(one time.Duration) time.Duration {
	sum, delay := time.Duration(0), r.Delay
	for range r.GiveUpAfter - 1 {
		if sum += one + delay; sum > longest {
			return sum
		}
		delay = min(2*delay, r.MaxDelay)
	}
	return sum
}
