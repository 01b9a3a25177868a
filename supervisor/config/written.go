package config

import (
	"maps"
	"slices"
)

// clone is a copy that decoding can change without changing g.
func (g Program) clone() Program {
	g.Env = maps.Clone(g.Env)
	g.Limits = maps.Clone(g.Limits)
	g.InheritEnv = slices.Clone(g.InheritEnv)
	return g
}

// inherited are the defaults of a process: its service's keys, but for those that belong to a single process.
func (g Program) inherited() Program {
	g = g.clone()
	g.Command = nil
	g.Ready = Ready{Timeout: g.Ready.Timeout}
	g.Log.File = ""
	return g
}

// service is what w means. It leaves out settings without effect, so that equal services compare equal.
func (w written) service() Service {
	s := w.Service
	if len(s.Processes) == 0 {
		s.Processes = []Process{{Name: MainProcess, Program: w.Program}}
	}
	if s.Warm != nil {
		s.Replicated = s.Warm.copies()
	}
	s.Processes, s.Address = s.withAddresses(), nil
	for i := range s.Processes {
		s.Processes[i].tidy()
	}
	if s.Health.follower().Way() == "" {
		s.Health = HealthCheck{}
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

func (process *Process) tidy() {
	process.NeedsProof = process.NeedsProof || process.SurvivesBoot
	if process.member() != "" {
		process.tidyMember()
		return
	}
	switch way := process.Ready.Way(); {
	case process.Oneshot:
		process.Ready = Ready{Timeout: process.Ready.Timeout}
	case way == "":
		process.Ready = Ready{}
	case way == "after":
		process.Ready.Timeout = 0
	}
	if len(process.Undo) == 0 {
		process.UndoTimeout = 0
	}
	if process.Log.File == "" {
		process.Log = LogFile{}
	}
	if len(process.Caps.Ambient) == 0 {
		process.Caps.Ambient = nil
	}
	process.Program = process.clone()
}

// hookNames are the keys of Hooks.all.
var hookNames = []string{"on_active", "on_standby", "on_fence", "on_give_up"}

func (h *Hooks) all() []*Hook { return []*Hook{&h.OnActive, &h.OnStandby, &h.OnFence, &h.OnGiveUp} }

// write is the counterpart of service: with command: where that says it all.
func (s Service) write() written {
	w := written{Service: s}
	if s.Warm != nil {
		w.Replicated = nil
	}
	first, rest := s.Processes[0], s.Processes[1:]
	for s.Replicated != nil && len(rest) > 0 && rest[0].Address != nil && rest[0].Name == rest[0].Address.IP.Addr() && !rest[0].NeedsProof {
		w.Address, rest = append(w.Address, *rest[0].Address), rest[1:]
	}
	if len(rest) == 0 && first.plain() {
		w.Program, w.Processes = first.Program, nil
		return w
	}
	w.Program = DefaultService().Processes[0].Program
	w.Processes = append([]Process{first}, rest...)
	return w
}

// plain reports whether the process could as well be written with the service's own keys.
func (process Process) plain() bool {
	return process.Name == MainProcess && process.member() == "" && !process.Oneshot && len(process.Undo) == 0 && !process.NeedsProof
}
