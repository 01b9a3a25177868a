package child

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
)

// Container is the containment of trees on this host, as found by Probe.
type Container struct {
	Kind    string `json:"kind"`
	Why     string `json:"why,omitempty"`     // why nothing better
	Base    string `json:"base,omitempty"`    // cgroup: where leaves are made
	UserNS  bool   `json:"userns,omitempty"`  // pidns: in a user namespace, for want of privilege
	MountNS bool   `json:"mountns,omitempty"` // pidns: with a /proc of its own
}

// ErrNoContainer says that no allowed containment works here.
var ErrNoContainer = errors.New("no containment works here")

// Probe finds the best containment that mode allows (auto, cgroup, pidns, strict, walk) by a real test: it makes a
// container, starts a process in it, kills it, proves its death, and removes the container.
func Probe(ctx context.Context, mode, exe string, log hclog.Logger) (Container, error) {
	if exe == "" {
		exe = "/proc/self/exe"
	}
	if log == nil {
		log = hclog.NewNullLogger()
	}
	tries := map[string][]string{
		"auto":     {KindCgroup, KindPidNS, KindWalk},
		"strict":   {KindCgroup, KindPidNS},
		KindCgroup: {KindCgroup},
		KindPidNS:  {KindPidNS},
		KindWalk:   {KindWalk},
	}[mode]
	if tries == nil {
		return Container{}, fmt.Errorf("%w: unknown mode %q", ErrNoContainer, mode)
	}
	runtime.LockOSThread() // processes forked here die with their thread
	defer runtime.UnlockOSThread()
	var faults []error
	for _, kind := range tries {
		c, err := probeKind(ctx, kind, exe)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", kind, err))
			continue
		}
		c.Why = inOneLine(faults)
		switch kind {
		case KindWalk:
			log.Warn("last resort: processes are contained by walking /proc; a tree that loses its stub cannot be proved dead",
				"why", c.Why)
		case KindPidNS:
			if c.UserNS {
				log.Warn("without privilege, programs run in a user namespace of their own, too: setuid and setgid programs and file "+
					"capabilities (sudo, su, mount) give them nothing there, and other users' files belong to nobody; "+
					"a cgroup that is delegated to this user is used instead, where there is one (systemd: Delegate=yes)", "why", c.Why)
			}
			log.Info("processes are contained by a PID namespace", "why", c.Why)
		default:
			log.Info("processes are contained by a cgroup", "base", c.Base)
		}
		return c, nil
	}
	return Container{}, fmt.Errorf("%w: %w", ErrNoContainer, errors.Join(faults...))
}

func probeKind(ctx context.Context, kind, exe string) (Container, error) {
	switch kind {
	case KindCgroup:
		base, err := cgroupBase()
		if err != nil {
			return Container{}, err
		}
		c := Container{Kind: kind, Base: base}
		return c, probeCgroup(ctx, c, exe)
	case KindWalk:
		c := Container{Kind: kind}
		return c, probeStub(ctx, c, exe)
	}
	var faults []error
	for _, c := range []Container{
		{Kind: kind, MountNS: true},
		{Kind: kind},
		{Kind: kind, MountNS: true, UserNS: true},
		{Kind: kind, UserNS: true},
	} {
		err := probeStub(ctx, c, exe)
		if err == nil {
			return c, nil
		}
		faults = append(faults, err)
	}
	return Container{}, errors.New(inOneLine(faults))
}

// inOneLine joins the errors, each once.
func inOneLine(faults []error) string {
	var said []string
	for _, err := range faults {
		for line := range strings.Lines(err.Error()) {
			if line = strings.TrimSpace(line); !slices.Contains(said, line) {
				said = append(said, line)
			}
		}
	}
	return strings.Join(said, "; ")
}

const probeMark = stubMark + "probe"

func probeStub(ctx context.Context, c Container, exe string) error {
	s, err := newStub(c, exe, "understudy", probeMark, os.Stdout, os.Stderr)
	if err != nil {
		return err
	}
	m, err := s.hear(ctx, 5*time.Second)
	if err == nil && (m.Op != opReady || c.MountNS && m.Why != "") {
		err = errors.New(m.Why)
	}
	if err != nil {
		s.abort()
		return fmt.Errorf("stub: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	err = killUntilDead(ctx, s.body, true)
	s.abort()
	return err
}

func probeCgroup(ctx context.Context, c Container, exe string) (err error) {
	if err := os.MkdirAll(c.Base, 0o755); err != nil {
		return err
	}
	l, err := makeLeaf(c.Base, "probe", "")
	if err != nil {
		return err
	}
	defer l.close()
	defer func() {
		if err != nil {
			_ = l.strike()
			_ = l.remove()
		}
	}()
	in, err := l.newRun(1)
	if err != nil {
		return err
	}
	defer in.close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	ours, theirs, err := socketPair() // a stub that waits at its gate for ever
	if err != nil {
		return err
	}
	defer ours.Close()
	defer theirs.Close()
	attr := (&program{Env: Environ()}).attr(null, null, null, theirs)
	attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, in.dir
	process, err := os.StartProcess(exe, []string{"understudy" + initTitle + probeMark, KindCgroup}, attr)
	if err != nil {
		return fmt.Errorf("fork into a cgroup: %w", err)
	}
	defer func() {
		_ = process.Kill()
		_, _ = process.Wait()
	}()
	own, err := statOf(process.Pid)
	if err == nil {
		err = in.name(&first{pid: process.Pid, start: own.start})
	}
	if err != nil {
		return err
	}
	if dead, err := l.dead(); dead || err != nil {
		return errors.Join(errors.New("a process that was forked into a cgroup is not seen in it"), err)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := killUntilDead(ctx, l, true); err != nil {
		return err
	}
	if late, err := os.StartProcess(exe, []string{"understudy" + initTitle + probeMark, KindCgroup}, attr); err == nil {
		_ = late.Kill()
		_, _ = late.Wait()
		return errors.New("a removed cgroup can still be forked into")
	}
	return nil
}
