package config

import (
	"maps"
	"slices"
	"strings"
	"syscall"
	"time"
)

// settings checks all of a service but whether it has a command: defaults need none.
func (v *validator) settings(p path, s Service) {
	v.command(p.key("command"), s.Command)
	if s.WorkingDir != "" {
		v.absolute(p.key("working_dir"), s.WorkingDir)
	}
	v.env(p.key("env"), s.Env)
	v.choice(p.key("election"), string(s.Election), s.Election)
	v.choice(p.key("contain"), string(s.Contain), s.Contain)
	v.notNegative(p.key("grace_delay"), s.GraceDelay)
	v.stopSignal(p.key("stop_signal"), syscall.Signal(s.StopSignal))
	v.notNegative(p.key("stop_timeout"), s.StopTimeout)
	v.restart(p.key("restart"), s.Restart)
	v.fencing(p.key("fencing"), s.Fencing)
}

// command checks words that are there; none at all is for the caller to judge.
func (v *validator) command(p path, words Command) {
	if len(words) > 0 && strings.TrimSpace(words[0]) == "" {
		v.fault(p, "the program's name is empty")
		return
	}
	for i, word := range words {
		if strings.ContainsRune(word, 0) {
			v.ratio([]path{p.item(i), p}, "an argument must not contain a NUL character")
		}
	}
}

// reserved is what the supervisor tells a child; a file must not contradict it.
var reserved = []string{"UNDERSTUDY_SERVICE", "UNDERSTUDY_NODE", "UNDERSTUDY_TOKEN"}

func (v *validator) env(p path, env map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		at := p.key(name)
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00"):
			v.found = append(v.found, found{keys: []path{at}, onKey: true, message: "not a name for a variable"})
		case slices.Contains(reserved, name):
			v.found = append(v.found, found{keys: []path{at}, onKey: true, message: "is set by the supervisor itself"})
		case strings.ContainsRune(env[name], 0):
			v.fault(at, "a value must not contain a NUL character")
		}
	}
}

func (v *validator) stopSignal(p path, signal syscall.Signal) {
	switch signal {
	case syscall.SIGSTOP, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGCONT:
		v.fault(p, "%v freezes or wakes a program and does not end it: write TERM, INT, QUIT or another", Signal(signal))
	default:
		if signal < 1 || signal > 64 {
			v.fault(p, "%d is not a signal: numbers go from 1 to 64", int(signal))
		}
	}
}

func (v *validator) notNegative(p path, d time.Duration) bool {
	if d < 0 {
		v.fault(p, "must not be negative, as %v is", d)
	}
	return d >= 0
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
	// This holds however the delays grow: each is at least the first.
	if waits := time.Duration(r.GiveUpAfter - 1); waits > 0 && r.Delay >= r.Within/waits {
		v.ratio([]path{within, delay, p.key("give_up_after")},
			"%d failures with delays of at least %v between them take %d*%v or more, so within %v the service would "+
				"never give up: make within longer, or delay or give_up_after smaller",
			r.GiveUpAfter, r.Delay, r.GiveUpAfter-1, r.Delay, r.Within)
	} else if r.Within == 0 {
		v.fault(within, "must be positive")
	}
}

func (v *validator) fencing(p path, f Fencing) {
	v.choice(p.key("on_failure"), string(f.OnFailure), f.OnFailure)
	for i, method := range f.Methods {
		at := p.key("methods").item(i)
		if method.Exec == nil {
			v.fault(at, "names no method: write exec: {command: [...], timeout: 10s}")
			continue
		}
		at = at.key("exec")
		if len(method.Exec.Command) == 0 {
			v.fault(at.key("command"), "missing: say which program fences")
		}
		v.command(at.key("command"), method.Exec.Command)
		if method.Exec.Timeout <= 0 {
			v.fault(at.key("timeout"), "must be positive, not %v", method.Exec.Timeout)
		}
	}
}
