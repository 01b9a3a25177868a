package containment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/supervisor/child/box"
	"understudy/supervisor/child/inside"
	"understudy/supervisor/child/runas"
	"understudy/supervisor/child/wire"
)

// errNoContainer says that no allowed containment works here.
var errNoContainer = errors.New("no containment works here")

// Choose finds the best containment that mode allows (auto, cgroup, pidns, strict, walk) by a real test: it makes a
// container, starts a process in it, kills it, proves its death, and removes the container.
func Choose(ctx context.Context, mode string, log hclog.Logger) (box.Container, error) {
	if log == nil {
		log = hclog.NewNullLogger()
	}
	tries := map[string][]string{
		"auto":         {box.KindCgroup, box.KindPidNS, box.KindWalk},
		"strict":       {box.KindCgroup, box.KindPidNS},
		box.KindCgroup: {box.KindCgroup},
		box.KindPidNS:  {box.KindPidNS},
		box.KindWalk:   {box.KindWalk},
	}[mode]
	if tries == nil {
		return box.Container{}, fmt.Errorf("%w: unknown mode %q", errNoContainer, mode)
	}
	runtime.LockOSThread() // processes forked here die with their thread
	defer runtime.UnlockOSThread()
	var faults []error
	for _, kind := range tries {
		c, err := probeKind(ctx, kind)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", kind, err))
			continue
		}
		c.Why = inOneLine(faults)
		switch kind {
		case box.KindWalk:
			log.Warn("last resort: processes are contained by walking /proc; a tree that loses its stub cannot be proved dead",
				"why", c.Why)
		case box.KindPidNS:
			if c.UserNS {
				log.Warn("this supervisor has no privilege, so programs run in their own user namespace: "+
					"sudo, su and other setuid programs do not work there; "+
					"run as root, or in a unit with Delegate=yes", "why", c.Why)
			}
			log.Info("processes are contained by a PID namespace")
		default:
			log.Info("processes are contained by a cgroup", "base", c.Base)
		}
		return c, nil
	}
	return box.Container{}, fmt.Errorf("%w: %w", errNoContainer, errors.Join(faults...))
}

func probeKind(ctx context.Context, kind string) (box.Container, error) {
	switch kind {
	case box.KindCgroup:
		base, err := box.CgroupBase()
		if err != nil {
			return box.Container{}, err
		}
		c := box.Container{Kind: kind, Base: base}
		return c, probeCgroup(ctx, c)
	case box.KindWalk:
		c := box.Container{Kind: kind}
		return c, probeStub(ctx, c)
	}
	var faults []error
	for _, c := range []box.Container{
		{Kind: kind, MountNS: true},
		{Kind: kind},
		{Kind: kind, MountNS: true, UserNS: true},
		{Kind: kind, UserNS: true},
	} {
		err := probeStub(ctx, c)
		if err == nil {
			return c, nil
		}
		faults = append(faults, err)
	}
	return box.Container{}, errors.New(inOneLine(faults))
}

// inOneLine joins the errors, each once.
func inOneLine(faults []error) string {
	var said []string
	for _, err := range faults {
		for line := range strings.Lines(err.Error()) {
			line = strings.TrimSpace(line)
			if !slices.Contains(said, line) {
				said = append(said, line)
			}
		}
	}
	return strings.Join(said, "; ")
}

const probeMark = box.StubMark + "probe"

func probeStub(ctx context.Context, c box.Container) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	s, err := inside.ForkStub(c, probeMark, "", [3]*os.File{null, os.Stdout, os.Stderr}, runas.Environ())
	if err != nil {
		return err
	}
	m, err := s.NextMessage(ctx, 5*time.Second)
	if err == nil && (m.Op != wire.OpReady || c.MountNS && m.Why != "") {
		err = errors.New(m.Why)
	}
	if err != nil {
		s.Abort()
		return fmt.Errorf("stub: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	err = box.KillUntilDead(ctx, s.Box, true)
	s.Abort()
	return err
}

func probeCgroup(ctx context.Context, c box.Container) (err error) {
	if err := os.MkdirAll(c.Base, 0o755); err != nil {
		return err
	}
	l, err := box.MakeTreeCgroup(c.Base, "probe", "")
	if err != nil {
		return err
	}
	defer l.Close()
	defer func() {
		if err != nil {
			_ = l.KillNow()
			_ = l.Remove()
		}
	}()
	in, err := l.NewRun(1)
	if err != nil {
		return err
	}
	defer in.Close()
	waits, err := inside.Fork(in.Dir) // at its gate, for ever
	if err != nil {
		return fmt.Errorf("fork into a cgroup: %w", err)
	}
	defer waits.Discard()
	own, err := box.StatOf(waits.Process.Pid)
	if err == nil {
		err = in.Name(&box.First{Pid: own.Pid, Start: own.Start})
	}
	if err != nil {
		return err
	}
	if dead, err := l.Dead(); dead || err != nil {
		return errors.Join(errors.New("a process that was forked into a cgroup is not seen in it"), err)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := box.KillUntilDead(ctx, l, true); err != nil {
		return err
	}
	late, err := inside.Fork(in.Dir)
	if err == nil {
		late.Discard()
		return errors.New("a removed cgroup can still be forked into")
	}
	return nil
}
