package cli

import (
	"maps"
	"slices"
	"syscall"

	"understudy/election"
	"understudy/fencing"
	"understudy/fencing/agent"
	"understudy/supervisor"
	"understudy/supervisor/child"
	"understudy/supervisor/config"
)

// translate makes the supervisor's view of a service.
func translate(name string, s config.Service, once bool, keys *agent.Keys) supervisor.Service {
	v := supervisor.Service{
		Name: name, Order: election.Order(s.Election), Contain: string(s.Contain), Once: once,
		Priority: s.Priority, Failback: s.Failback, Ineligible: !s.Eligible,
		Failsafe:     s.OnLoss == config.OnLossFailsafe,
		Moves:        supervisor.Moves{Max: s.Moves.Max, Within: s.Moves.Within},
		ReloadSignal: syscall.Signal(s.ReloadSignal),
		Restart: supervisor.Restart{
			Policy: string(s.Restart.Policy), Delay: s.Restart.Delay, MaxDelay: s.Restart.MaxDelay, GiveUpAfter: s.Restart.GiveUpAfter,
			Within: s.Restart.Within, RejoinAfter: s.Restart.RejoinAfter,
		},
		Health: supervisor.Health{
			TCP: s.Health.TCP, HTTP: s.Health.HTTP, Exec: s.Health.Exec, Interval: s.Health.Interval, Timeout: s.Health.Timeout,
			StartDelay: s.Health.StartDelay, Failures: s.Health.Failures,
		},
		Precheck: supervisor.Precheck{Exec: s.Precheck.Exec, Interval: s.Precheck.Interval, Timeout: s.Precheck.Timeout},
		Hooks: supervisor.Hooks{
			OnActive: hook(s.Hooks.OnActive), OnStandby: hook(s.Hooks.OnStandby), OnFence: hook(s.Hooks.OnFence), OnGiveUp: hook(s.Hooks.OnGiveUp),
		},
		Fencing: supervisor.FencingPolicy{Grace: s.GraceDelay, OnFailure: fencing.OnFailure(s.Fencing.OnFailure)},
	}
	for _, p := range s.Processes {
		v.Programs = append(v.Programs, program(p))
	}
	for _, m := range s.Fencing.Methods {
		v.Fencing.Steps = append(v.Fencing.Steps, step(m, keys))
	}
	return v
}

func program(p config.Process) supervisor.Program {
	v := supervisor.Program{
		Name: p.Name, Command: p.Command, Dir: p.WorkingDir, User: p.User, Group: p.Group, Umask: (*uint32)(p.Umask), EnvFile: p.EnvFile,
		Nice: p.Nice, OOMScore: p.OOMScoreAdj, StopSignal: syscall.Signal(p.StopSignal), StopTimeout: p.StopTimeout,
		Ready: supervisor.Ready{
			TCP: p.Ready.TCP, HTTP: p.Ready.HTTP, Exec: p.Ready.Exec, Notify: p.Ready.Notify, After: p.Ready.After, Timeout: p.Ready.Timeout,
		},
		Log:     supervisor.LogFile{Path: p.Log.File, MaxSize: int64(p.Log.MaxSize), Keep: p.Log.Keep, Compress: p.Log.Compress},
		Oneshot: p.Oneshot, Undo: p.Undo, InheritEnv: p.InheritEnv, NoNewPrivs: p.NoNewPrivs, Caps: capabilities(p.Caps),
	}
	for _, key := range slices.Sorted(maps.Keys(p.Env)) {
		v.Env = append(v.Env, key+"="+p.Env[key])
	}
	for name, l := range p.Limits {
		if v.Limits == nil {
			v.Limits = map[string]supervisor.Limit{}
		}
		v.Limits[name] = supervisor.Limit(l)
	}
	return v
}

func capabilities(c config.Capabilities) *child.Capabilities {
	if c.Bounding == nil && len(c.Ambient) == 0 {
		return nil
	}
	v := &child.Capabilities{Ambient: config.CapabilityMask(c.Ambient)}
	if c.Bounding != nil {
		all := config.CapabilityMask(*c.Bounding)
		v.Bounding = &all
	}
	return v
}

func hook(h config.Hook) supervisor.Hook {
	return supervisor.Hook{Command: h.Command, Timeout: h.Timeout}
}
