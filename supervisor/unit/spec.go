package unit

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"

	"understudy/supervisor/child"
	"understudy/supervisor/child/inside"
	"understudy/supervisor/child/logfile"
	"understudy/supervisor/child/notify"
	"understudy/supervisor/child/probe"
	"understudy/supervisor/child/runas"
	"understudy/supervisor/config"
	"understudy/supervisor/host"
	"understudy/supervisor/safefile"
	"understudy/supervisor/wait"
)

// spec says how to start a program. It looks users and files of the config up now, since they may have changed.
func (u *Unit) spec(ctx context.Context, tree host.Tree, prog config.Process, token int64) (child.Spec, *notify.Socket, error) {
	s := child.Spec{
		Argv: prog.Command, Dir: prog.WorkingDir, Stdout: os.Stdout, Stderr: os.Stderr,
		Settings: inside.Settings{
			Umask: (*uint32)(prog.Umask), Nice: prog.Nice, OOMScoreAdj: prog.OOMScoreAdj, NoNewPrivs: prog.NoNewPrivs,
			Capabilities: capabilities(prog.Caps),
		},
	}
	each := prog.ProcessLimits()
	for _, name := range slices.Sorted(maps.Keys(each)) {
		s.Limits = append(s.Limits, inside.Limit{Name: name, Soft: each[name].Soft, Hard: each[name].Hard})
	}
	s.Bounds = bounds(prog.Program)
	env, who := runas.Inherited(prog.InheritEnv), safefile.Who{}
	if prog.User != "" || prog.Group != "" {
		account, err := runas.LookupUser(ctx, prog.User, prog.Group)
		if err != nil {
			return s, nil, err
		}
		s.Credential, who = &account.Credential, account.Who()
		env = account.Environ(env)
	}
	if prog.EnvFile != "" {
		more, err := wait.Reached(ctx, &u.reach, func() ([]string, error) { return config.ReadEnvFile(prog.EnvFile, who) }, nil)
		if err != nil {
			return s, nil, fmt.Errorf("env_file: %w", err)
		}
		env = append(env, more...)
	}
	s.Env = slices.Concat(env, prog.Environ(), u.Facts(token))
	if prog.Log.File != "" {
		log, err := u.logs.open(ctx, &u.reach, prog.Log, who, u.log)
		if err != nil {
			return s, nil, fmt.Errorf("log file: %w", err)
		}
		s.Stdout, s.Stderr = log.Writer(), log.Writer()
		if s.Credential != nil {
			u.grant(log, s.Credential)
		}
	}
	if !prog.Ready.Notify {
		return s, nil, nil
	}
	listen := notify.Config{UID: uint32(os.Geteuid()), Belongs: tree.Owns, Logger: u.log.Named("notify"), RefuseFiles: u.deaf.Hung()}
	if s.Credential != nil {
		listen.UID = s.Credential.UID
	}
	socket, err := wait.Reached(ctx, &u.deaf,
		func() (*notify.Socket, error) { return notify.Listen(listen) },
		func(late *notify.Socket) { _ = late.Close() })
	if err != nil {
		return s, nil, fmt.Errorf("listen for READY=1: %w", err)
	}
	s.Env = append(s.Env, socket.Env())
	return s, socket, nil
}

func (u *Unit) grant(log *logfile.Log, to *inside.Credential) {
	if err := log.Grant(to.UID, to.GID); err != nil {
		u.log.Debug("the program cannot open /dev/stdout again", "service", u.cfg.Service, "error", err)
	}
}

func capabilities(c config.Capabilities) *inside.Capabilities {
	if c.Bounding == nil && len(c.Ambient) == 0 {
		return nil
	}
	v := &inside.Capabilities{Ambient: config.CapabilityMask(c.Ambient)}
	if c.Bounding != nil {
		all := config.CapabilityMask(*c.Bounding)
		v.Bounding = &all
	}
	return v
}

// checker makes a program's check, or nil if none is configured. A check command runs as the program's user and in its tree, so that
// none of its processes can outlive the term.
func (r *Run) checker(prog config.Process, tcp, http string, command []string) probe.Checker {
	u, tree, token := r.u, r.cfg.Tree, r.cfg.Token
	switch {
	case tcp != "":
		return &ownAnswer{Checker: probe.Probe{Kind: probe.KindTCP, Target: tcp}, address: tcp, since: r.began, who: probe.Stranger}
	case http != "":
		return &ownAnswer{
			Checker: probe.Probe{Kind: probe.KindHTTP, Target: http}, address: addressOf(http), since: r.began, who: probe.Stranger,
		}
	case len(command) == 0:
		return nil
	}
	run := func(ctx context.Context, argv []string) ([]byte, int, error) {
		prog := prog
		prog.Command, prog.Log, prog.Ready = argv, config.LogFile{}, config.Ready{}
		spec, _, err := u.spec(ctx, tree, prog, token)
		if err != nil {
			return nil, 0, err
		}
		result, err := child.Output(ctx, &u.reach, tree.Start, spec)
		return result.Output, result.Status.Code, err
	}
	return probe.Probe{Kind: probe.KindExec, Argv: command, Run: run}
}
