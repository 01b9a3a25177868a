package child

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"understudy/packaging/need"
	"understudy/supervisor/child/box"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/testbed/must"
)

const runawayWord = "child-test-runaway"

func init() {
	if len(os.Args) == 2 && os.Args[1] == runawayWord { // here it is the main thread, whose death signal it is
		_ = unix.Prctl(unix.PR_SET_PDEATHSIG, 0, 0, 0, 0)
	}
}

// runaway is a program that moves itself to the cgroup $OUT, and has no death signal any more, as after a setuid exec.
func runaway() {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, unix.SIGTERM)
	own, err := os.ReadFile("/proc/self/cgroup")
	err = errors.Join(err, os.WriteFile(filepath.Join(os.Getenv("OUT"), "cgroup.procs"), []byte("0"), 0))
	if err != nil {
		panic(fmt.Sprintf("%s: %v", own, err))
	}
	fmt.Println("ready")
	<-asked
	fmt.Println("asked")
	if os.Getenv("DEAF") == "" {
		os.Exit(9)
	}
	select {}
}

// outside makes a cgroup that is nobody's tree, and tells programs of it.
func outside(t *testing.T) string {
	t.Helper()
	need.These(t, box.KindCgroup)
	out, err := os.MkdirTemp(probed(t, box.KindCgroup).Base, "out-")
	must.OK(t, err)
	t.Cleanup(func() { clearAway(out) })
	t.Setenv("OUT", out)
	return out
}

// P2: a program that has left its cgroup is dead when its process is.
func TestProgramThatLeftItsCgroupIsKilled(t *testing.T) {
	outside(t)
	script := "exec " + self(t) + " " + runawayWord
	for name, kill := range map[string]func(*Process) error{
		"its start": func(p *Process) error { return p.Kill(t.Context()) },
		"its tree":  func(p *Process) error { return p.tree.Kill(t.Context()) },
		"for good":  func(p *Process) error { return p.tree.End(t.Context()) },
		"by its id": func(p *Process) error { return box.KillByID(t.Context(), p.tree.ID()) },
	} {
		t.Run(name, func(t *testing.T) {
			p, r := started(t, planted(t, guarded(t, box.KindCgroup)), script)
			await(t, r, "ready")
			if dead, err := box.ProveDead(p.tree.ID()); dead {
				t.Errorf("it is called dead while it runs: %v", err)
			}
			must.OK(t, kill(p))
			deadNow(t, r)
		})
	}
}

func TestProgramThatLeftItsCgroupIsNamed(t *testing.T) {
	out := outside(t)
	g := guarded(t, box.KindCgroup)
	var log bytes.Buffer
	g.cfg.Logger = hclog.New(&hclog.LoggerOptions{Output: &log})
	tree := planted(t, g)
	p, r := started(t, tree, "exec "+self(t)+" "+runawayWord)
	await(t, r, "ready")
	pid := p.Pid()
	_, stays := started(t, tree, "echo ready; sleep 1000")
	await(t, stays, "ready")
	for range 2 {
		found, err := tree.Strays()
		if err != nil || len(found) != 1 || found[0].Pid != pid || !strings.HasSuffix(found[0].Cgroup, "/"+filepath.Base(out)) {
			t.Errorf("found %+v: %v", found, err)
		}
	}
	must.OK(t, tree.End(t.Context()))
	if found, err := tree.Strays(); err != nil || len(found) > 0 {
		t.Errorf("dead, and found %+v: %v", found, err)
	}
	if said := log.String(); strings.Count(said, "another cgroup") != 1 || !strings.Contains(said, "pid="+itoa(pid)) ||
		!strings.Contains(said, filepath.Base(out)) {
		t.Error(said)
	}
}

// A user's own supervisor is lent a part of the cgroups, and so are its programs, which may also shut theirs.
func TestProgramThatLeftADelegatedCgroupIsKilled(t *testing.T) {
	need.These(t, "root")
	base := outside(t)
	for _, name := range []string{"trees", "elsewhere", "self"} {
		must.OK(t, os.Mkdir(filepath.Join(base, name), 0o755))
	}
	err := filepath.WalkDir(base, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, nobody, nobody))
	})
	must.OK(t, err)
	dir, err := os.Open(filepath.Join(base, "self"))
	must.OK(t, err)
	defer dir.Close()
	cmd := exec.Command("/proc/self/exe", filepath.Join(base, "trees"))
	cmd.Args[0] = delegatedRole
	cmd.Stderr = os.Stderr
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "OUT="+filepath.Join(base, "elsewhere"), "DEAF=yes")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}, UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	if out, err := cmd.Output(); err != nil || string(out) != "dead\n" {
		t.Errorf("%q %v", out, err)
	}
}

const (
	delegatedRole = "child-test-delegated"
	nobody        = 65534
)

// delegated is the supervisor of a user.
func delegated() error {
	ctx, cancel := context.WithCancel(context.Background())
	g, err := StartGuard(ctx, GuardConfig{Container: box.Container{Kind: box.KindCgroup, Base: os.Args[1]}, Name: "nobody"})
	if err != nil {
		cancel()
		return err
	}
	ran := make(chan error, 1)
	go func() { ran <- g.Run(ctx) }()
	defer func() { cancel(); <-ran }()
	if err := errors.Join(g.Begin(1, nil), g.Extend(1, wire.Now()+time.Minute)); err != nil {
		return err
	}
	tree, err := g.NewTree(ctx, 1, "svc", nil)
	if err != nil {
		return err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	p, err := tree.Start(ctx, Spec{Argv: []string{"/proc/self/exe", runawayWord}, Env: os.Environ(), Stdout: w})
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	buf := make([]byte, 64)
	if n, err := r.Read(buf); err != nil || string(buf[:n]) != "ready\n" {
		return fmt.Errorf("%q %w", buf[:n], err)
	}
	if err := p.Signal(unix.SIGTERM); err != nil {
		return err
	}
	if n, err := r.Read(buf); err != nil || string(buf[:n]) != "asked\n" {
		return fmt.Errorf("%q %w", buf[:n], err)
	}
	own := tree.cgroup.Path + "/run-2"
	shut := "mkdir -p " + own + "/in/in; chmod 0 " + own + "/in; chmod 0 " + own + "; chmod 0 " + tree.cgroup.Path + "; echo ready; sleep 1000"
	if r, w, err = os.Pipe(); err != nil {
		return err
	}
	_, err = tree.Start(ctx, Spec{Argv: []string{"sh", "-c", shut}, Env: os.Environ(), Stdout: w})
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	if n, err := r.Read(buf); err != nil || string(buf[:n]) != "ready\n" {
		return fmt.Errorf("%q %w", buf[:n], err)
	}
	bounded, stop := context.WithTimeout(ctx, patience)
	defer stop()
	if err := tree.End(bounded); err != nil {
		return err
	}
	select {
	case <-p.Done():
	case <-time.After(patience):
		return errors.New("it lives")
	}
	fmt.Println("dead")
	return nil
}

func TestProgramThatLeftItsCgroupIsAskedFirst(t *testing.T) {
	outside(t)
	p, r := started(t, planted(t, guarded(t, box.KindCgroup)), "exec "+self(t)+" "+runawayWord)
	await(t, r, "ready")
	must.OK(t, p.Signal(unix.SIGTERM))
	if status, err := p.Wait(t.Context()); err != nil || status.Code != 9 {
		t.Errorf("%+v %v", status, err)
	}
}

// P3, P4: the guardians hold it, whatever becomes of the cgroup that it has left, and of the guardians that were there when it did.
func TestGuardiansKillAProgramThatLeftItsCgroup(t *testing.T) {
	outside(t)
	script := "exec " + self(t) + " " + runawayWord
	for name, before := range map[string]func(p *puppet) (others []int){
		"":                     func(*puppet) []int { return nil },
		", its cgroup removed": func(p *puppet) []int { p.tidy(); return nil },
		", only a new guardian left": func(p *puppet) []int {
			kill9(p.guardians()[0])
			p.settle()
			p.tidy()
			return p.guardians()[1:]
		},
		", its cgroup removed, and only a new guardian left": func(p *puppet) []int {
			p.tidy()
			kill9(p.guardians()[0])
			p.settle()
			return p.guardians()[1:]
		},
		", upgraded": func(p *puppet) []int { p.do(command{Do: "become"}); return nil },
		", upgraded, and only a new guardian left": func(p *puppet) []int {
			p.do(command{Do: "become"})
			kill9(p.guardians()[1])
			p.settle()
			p.tidy()
			return p.guardians()[:1]
		},
	} {
		t.Run("supervisor killed"+name, func(t *testing.T) {
			p := newPuppet(t, box.KindCgroup)
			p.raise(time.Minute, script)
			others := before(p)
			since := wire.Now()
			kill9(append(others, p.cmd.Process.Pid)...)
			p.diesAndCloses(since)
		})
	}
	t.Run("supervisor frozen", func(t *testing.T) {
		p := newPuppet(t, box.KindCgroup)
		_, deadline := p.raise(3*time.Second, script)
		freeze(t, p.cmd.Process.Pid)
		if at := p.dead(); at < deadline || at > deadline+stall {
			t.Errorf("dead %v after the deadline", at-deadline)
		}
		if c := p.closing(); c.Alive || !c.AllDead {
			t.Errorf("closed too early: %+v", c)
		}
	})
}

// settle waits until a killed guardian's successor serves. P4: until then the supervisor ends its terms, and that successor, when the
// other one dies.
func (p *puppet) settle() {
	p.t.Helper()
	p.do(command{Do: "serve"})
}

// tidy removes the cgroup that a program has left, as root may.
func (p *puppet) tidy() {
	p.t.Helper()
	must.OK(p.t, errors.Join(os.Remove(filepath.Join(p.cgroup, "run-1")), os.Remove(p.cgroup)))
}

// P4: what three killed at once have left is ended before anything else is begun.
func TestProgramThatLeftItsCgroupIsSweptAway(t *testing.T) {
	outside(t)
	p := newPuppet(t, box.KindCgroup)
	p.raise(time.Minute, "exec "+self(t)+" "+runawayWord)
	guardians := p.guardians()
	for _, pid := range guardians {
		freeze(t, pid)
	}
	kill9(p.cmd.Process.Pid)
	awaitDeath(t, p.cmd.Process.Pid)
	kill9(guardians...)
	awaitDeath(t, guardians...)
	p.lives()
	guardedAs(t, GuardConfig{Container: p.container, Name: "test"})
	p.dead()
}

// P2: while it cannot be killed it is not called dead, by anybody.
func TestProgramThatLeftItsCgroupIsNotCalledDeadBefore(t *testing.T) {
	outside(t)
	p, r := started(t, planted(t, guarded(t, box.KindCgroup)), "exec "+self(t)+" "+runawayWord)
	await(t, r, "ready")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	hold := &undying{p.part.box}
	if err := box.KillUntilDead(ctx, hold, true); !errors.Is(err, box.ErrUnproved) {
		t.Errorf("killed: %v", err)
	}
	held(t, r)
	if dead, err := box.ProveDead(p.tree.ID()); dead || err != nil {
		t.Errorf("the tree: %v %v", dead, err)
	}
	if dead, err := p.part.box.Dead(); dead || err != nil {
		t.Errorf("its start: %v %v", dead, err)
	}
}

// undying is a box that is not struck.
type undying struct{ box.Box }

func (*undying) KillNow() error    { return nil }
func (*undying) KillHarder() error { return nil }
