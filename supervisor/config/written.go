package config

import (
	"maps"
	"slices"
)

// clone is a copy that decoding can change without changing w.
func (w written) clone() written {
	w.Program = w.Program.clone()
	return w
}

func (p Program) clone() Program {
	p.Env = maps.Clone(p.Env)
	p.Limits = maps.Clone(p.Limits)
	p.InheritEnv = slices.Clone(p.InheritEnv)
	return p
}

// inherited are the defaults of a process: its service's keys, but for those that belong to a single process.
func (p Program) inherited() Program {
	p = p.clone()
	p.Command = nil
	p.Ready = Ready{Timeout: p.Ready.Timeout}
	p.Log.File = ""
	return p
}

// service is what w means. It leaves out settings without effect, so that equal services compare equal.
func (w written) service() Service {
	s := w.Service
	if len(s.Processes) == 0 {
		s.Processes = []Process{{Name: MainProcess, Program: w.Program}}
	}
	s.Processes = slices.Clone(s.Processes)
	for i := range s.Processes {
		s.Processes[i].tidy()
	}
	if s.Health.Way() == "" {
		s.Health = Health{}
	}
	if len(s.Precheck.Exec) == 0 {
		s.Precheck = Precheck{}
	}
	for _, hook := range s.Hooks.all() {
		if len(hook.Command) == 0 {
			*hook = Hook{}
		}
	}
	return s
}

func (p *Process) tidy() {
	switch way := p.Ready.Way(); {
	case p.Oneshot:
		p.Ready = Ready{Timeout: p.Ready.Timeout}
	case way == "":
		p.Ready = Ready{}
	case way == "after":
		p.Ready.Timeout = 0
	}
	if p.Log.File == "" {
		p.Log = LogFile{}
	}
	if len(p.Caps.Ambient) == 0 {
		p.Caps.Ambient = nil
	}
	p.Program = p.clone()
}

// hookNames are the keys of Hooks.all.
var hookNames = []string{"on_active", "on_standby", "on_fence", "on_give_up"}

func (h *Hooks) all() []*Hook { return []*Hook{&h.OnActive, &h.OnStandby, &h.OnFence, &h.OnGiveUp} }

// write is the counterpart of service: with command: where that says it all.
func (s Service) write() written {
	w := written{Service: s}
	if len(s.Processes) == 1 && s.Processes[0].plain() {
		w.Program, w.Processes = s.Processes[0].Program, nil
		return w
	}
	w.Program = DefaultService().Processes[0].Program
	return w
}

// plain reports whether the process could as well be written with the service's own keys.
func (p Process) plain() bool { return p.Name == MainProcess && !p.Oneshot && len(p.Undo) == 0 }
