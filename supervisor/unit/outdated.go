package unit

import (
	"reflect"
	"slices"

	"understudy/supervisor/child/inside"
	"understudy/supervisor/config"
)

// needsRestart reports whether a changed config requires a restart.
func needsRestart(was, now config.Service) bool {
	return !reflect.DeepEqual(startSettings(was), startSettings(now))
}

// startSetting is what cannot change while one program runs.
type startSetting struct {
	config.Process
	env  []string
	caps *inside.Capabilities
}

// startSettings are what cannot change while programs run. Configs with the same meaning have the same ones.
func startSettings(s config.Service) []startSetting {
	var all []startSetting
	for _, p := range s.Processes {
		e := startSetting{env: p.Environ(), caps: capabilities(p.Caps)}
		p.Env, p.Caps = nil, config.Capabilities{}
		if len(p.Limits) == 0 {
			p.Limits = nil
		}
		p.StopSignal, p.StopTimeout, p.Ready.Timeout, p.Undo, p.Undone, p.UndoTimeout, p.Sets, p.Keeps = 0, 0, 0, nil, nil, 0, nil, false
		p.Member, p.Probe = false, nil
		p.Log.MaxSize, p.Log.Keep = 0, 0
		e.Process = p
		all = append(all, e)
	}
	return all
}

// slow reports whether a unit takes time to become ready after its start.
func slow(s config.Service) bool {
	slow := func(p config.Process) bool { return p.Oneshot || !reflect.DeepEqual(p.Ready, config.Ready{}) }
	return len(s.Hooks.OnActive.Command) > 0 || slices.ContainsFunc(s.Processes, slow)
}

// current is a program's present config: the settings of its stop may change while it runs.
func current(s config.Service, p config.Process) config.Process {
	for _, now := range s.Processes {
		if now.Name == p.Name {
			p.StopSignal, p.StopTimeout = now.StopSignal, now.StopTimeout
		}
	}
	return p
}
