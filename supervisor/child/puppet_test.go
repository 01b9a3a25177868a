package child

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"understudy/supervisor/child/box"
	"understudy/supervisor/child/inside"
	"understudy/supervisor/child/reexec"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/testbed/must"
)

// A puppet is a supervisor in a process of its own, which does what it is told, line by line.
type puppet struct {
	t         *testing.T
	cmd       *exec.Cmd
	in        io.Writer
	out       *bufio.Reader
	container box.Container
	held      *os.File // every process of every tree has the other end
	log       *os.File // what the closers say
	logLines  *bufio.Reader
	dir       string
	cgroup    string // cgroup: of the last tree
	seen      []int  // guardians
}

type command struct {
	Do     string
	Epoch  uint64
	In     time.Duration
	Name   string
	Script string
	inside.Settings
}

type reply struct {
	Err       string
	Ended     bool // the error is ErrLeaseEnded
	Lost      bool // the error is ErrGuardiansLost
	Pid       int
	Guardians []int
	At        time.Duration
	ID        box.TreeID
}

const (
	patience = 20 * time.Second
	stall    = 5 * time.Second // for how long a machine may stand still, and nobody is late
)

func newPuppet(t *testing.T, kind string) *puppet {
	p := &puppet{t: t, dir: t.TempDir(), container: probed(t, kind)}
	for _, name := range []string{"held", "log"} {
		must.OK(t, unix.Mkfifo(filepath.Join(p.dir, name), 0o600))
	}
	p.held = p.open("held", unix.O_RDONLY)
	p.log = p.open("log", unix.O_RDWR)
	p.logLines = bufio.NewReader(p.log)
	setup, err := json.Marshal(p.container)
	must.OK(t, err)
	p.cmd = exec.Command("/proc/self/exe", string(setup), p.dir)
	p.cmd.Args[0] = puppetRole
	p.cmd.Stderr = os.Stderr
	p.cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	must.OK(t, err)
	p.out = bufio.NewReader(out)
	must.OK(t, p.cmd.Start())
	t.Cleanup(func() {
		for _, pid := range p.seen {
			_ = unix.Kill(pid, unix.SIGCONT)
		}
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	return p
}

func (p *puppet) open(name string, mode int) *os.File {
	fd, err := unix.Open(filepath.Join(p.dir, name), mode|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	must.OK(p.t, err)
	f := os.NewFile(uintptr(fd), name)
	p.t.Cleanup(func() { _ = f.Close() })
	return f
}

func (p *puppet) order(c command) {
	p.t.Helper()
	line, err := json.Marshal(c)
	must.OK(p.t, err)
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		p.t.Fatal(err)
	}
}

func (p *puppet) hear() reply {
	p.t.Helper()
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		p.t.Fatalf("the supervisor says nothing: %v", err)
	}
	var r reply
	must.OK(p.t, json.Unmarshal(line, &r))
	return r
}

// do gives an order that has to succeed.
func (p *puppet) do(c command) reply {
	p.t.Helper()
	p.order(c)
	r := p.hear()
	if r.Err != "" {
		p.t.Fatalf("%s: %s", c.Do, r.Err)
	}
	return r
}

// raise gets a tree running under a lease that ends so much later, and returns the program's pid and the lease's end.
func (p *puppet) raise(lease time.Duration, script string) (pid int, deadline time.Duration) {
	p.t.Helper()
	p.early(func() { pid = p.do(command{Do: "start", Name: "a", Script: script}).Pid })
	p.ready()
	return pid, p.under(lease)
}

// early gets a tree going under a long lease.
func (p *puppet) early(start func()) {
	p.t.Helper()
	p.do(command{Do: "begin", Epoch: 9})
	p.do(command{Do: "extend", Epoch: 9, In: time.Hour})
	p.cgroup = p.do(command{Do: "tree", Epoch: 9, Name: "a"}).ID.Path
	start()
}

// under has it live under a lease that ends so much later.
func (p *puppet) under(lease time.Duration) (deadline time.Duration) {
	p.t.Helper()
	p.do(command{Do: "begin", Epoch: 1})
	deadline = p.do(command{Do: "extend", Epoch: 1, In: lease}).At
	p.do(command{Do: "move", Epoch: 1, Name: "a"})
	p.do(command{Do: "finish", Epoch: 9})
	return deadline
}

func (p *puppet) guardians() []int {
	found := guardiansOf(p.cmd.Process.Pid)
	p.seen = append(p.seen, found...)
	return found
}

func guardiansOf(supervisor int) []int {
	all, _ := box.Processes()
	found := []int{0, 0}
	for _, s := range all {
		title, _ := os.ReadFile(filepath.Join("/proc", itoa(s.Pid), "cmdline"))
		if s.Ppid == supervisor && s.Alive() && strings.Contains(string(title), box.GuardianMark) {
			found[strings.Index("12", string(title)[strings.Index(string(title), "/2")-1:][:1])] = s.Pid
		}
	}
	return found
}

// ready waits until the script has said so.
func (p *puppet) ready() {
	p.t.Helper()
	_ = p.held.SetReadDeadline(time.Now().Add(patience))
	buf := make([]byte, 64)
	n, err := p.held.Read(buf)
	if err != nil || !strings.HasPrefix(string(buf[:n]), "ready") {
		p.t.Fatalf("the program did not get ready: %q %v", buf[:n], err)
	}
}

// dead waits until no process of the tree is left, and says when that was.
func (p *puppet) dead() time.Duration {
	p.t.Helper()
	_ = p.held.SetReadDeadline(time.Now().Add(patience))
	buf := make([]byte, 4096)
	for {
		_, err := p.held.Read(buf)
		if err == io.EOF {
			return wire.Now()
		}
		if err != nil {
			p.t.Fatalf("the tree lives on: %v", err)
		}
	}
}

// lives checks that the tree is there, without waiting for anything to happen to it.
func (p *puppet) lives() {
	p.t.Helper()
	_ = p.held.SetReadDeadline(time.Now().Add(time.Millisecond))
	if _, err := p.held.Read(make([]byte, 4096)); err == io.EOF {
		p.t.Fatal("the tree is dead")
	}
}

// closing waits for the next word of a session closer.
func (p *puppet) closing() closed {
	p.t.Helper()
	_ = p.log.SetReadDeadline(time.Now().Add(patience))
	line, err := p.logLines.ReadBytes('\n')
	if err != nil {
		p.t.Fatalf("no session was closed: %v", err)
	}
	var c closed
	must.OK(p.t, json.Unmarshal(line, &c))
	return c
}

func kill9(pids ...int) {
	for _, pid := range pids {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// puppetMain is the supervisor.
func puppetMain() int {
	var c box.Container
	if err := json.Unmarshal([]byte(os.Args[1]), &c); err != nil {
		return 3
	}
	level := hclog.Off
	if os.Getenv("CHILD_TEST_LOG") != "" {
		level = hclog.Debug
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	thread := make(chan func())
	cfg := GuardConfig{Container: c, Name: "test", Logger: hclog.New(&hclog.LoggerOptions{Level: level}), Thread: thread}
	trees, last := map[string]*Tree{}, map[string]*Process{}
	left, err := reexec.TakeState()
	if err != nil {
		return 7
	}
	replies := json.NewEncoder(os.Stdout)
	var g *Guard
	if left == nil {
		g, err = StartGuard(ctx, cfg)
	} else if g, err = puppetAdopts(ctx, cfg, left, trees, last); err == nil {
		err = replies.Encode(reply{})
	}
	if err != nil {
		return 4
	}
	g.watchdog.open = openFakeWatchdog
	ran := make(chan error, 1)
	go func() { ran <- g.Run(ctx) }()
	code := make(chan int, 1)
	go func() { code <- puppetLoop(ctx, cancel, g, ran, replies, trees, last) }()
	for {
		select {
		case job := <-thread:
			job()
		case code := <-code:
			return code
		}
	}
}

func puppetLoop(
	ctx context.Context, cancel func(), g *Guard, ran <-chan error, replies *json.Encoder, trees map[string]*Tree, last map[string]*Process,
) int {
	orders := json.NewDecoder(os.Stdin)
	for {
		var c command
		if err := orders.Decode(&c); err != nil {
			cancel()
			if err := <-ran; err != nil {
				return 5
			}
			return 0
		}
		r, err := puppetDo(ctx, g, trees, last, c)
		if err != nil {
			r.Err = err.Error()
			r.Ended, r.Lost = errors.Is(err, ErrLeaseEnded), errors.Is(err, ErrGuardiansLost)
		}
		if err := replies.Encode(r); err != nil {
			return 6
		}
	}
}

var shared []net.Listener // by a puppet

func puppetDo(ctx context.Context, g *Guard, trees map[string]*Tree, last map[string]*Process, c command) (r reply, err error) {
	dir := os.Args[2]
	switch c.Do {
	case "begin":
		raw, err := json.Marshal(ticket{Log: filepath.Join(dir, "log"), Held: filepath.Join(dir, "held")})
		if err != nil {
			return r, err
		}
		return r, g.Begin(c.Epoch, raw)
	case "extend":
		r.At = wire.Now() + c.In
		return r, g.Extend(c.Epoch, r.At)
	case "move":
		return r, trees[c.Name].Move(ctx, c.Epoch, []byte(c.Name))
	case "tree":
		t, err := g.NewTree(ctx, c.Epoch, c.Name, []byte(c.Name))
		if err == nil {
			trees[c.Name], r.ID = t, t.ID()
		}
		return r, err
	case "freeze": // at the next fork, after the last look at the lease
		g.beforeSpawn = func() { _ = unix.Tgkill(os.Getpid(), unix.Gettid(), unix.SIGSTOP) } // this thread stops before it returns
		return r, nil
	case "expect":
		t := trees[c.Name]
		t.Expect(ctx)
		t.expected.making.Lock()
		defer t.expected.making.Unlock()
		if t.expected.next == nil {
			return r, errors.New("nothing is prepared")
		}
		r.Pid = t.expected.next.p.pid
		return r, nil
	case "start":
		held, err := os.OpenFile(filepath.Join(dir, "held"), os.O_RDWR, 0)
		if err != nil {
			return r, err
		}
		defer held.Close()
		spec := Spec{Argv: []string{"sh", "-c", c.Script}, Env: os.Environ(), Stdout: held, Settings: c.Settings}
		p, err := trees[c.Name].Start(ctx, spec)
		if err == nil {
			r.Pid, last[c.Name] = p.Pid(), p
		}
		return r, err
	case "become", "become too late", "fail to become":
		return r, puppetBecomes(ctx, g, trees, last, c)
	case "look":
		_, err := trees[c.Name].Strays()
		return r, err
	case "pid":
		r.Pid = last[c.Name].Pid()
		return r, nil
	case "wait":
		status, err := last[c.Name].Wait(ctx)
		r.Pid = status.Code
		return r, err
	case "kill last":
		return r, last[c.Name].Kill(ctx)
	case "kill":
		return r, trees[c.Name].Kill(ctx)
	case "arm", "check":
		if c.Do == "check" {
			return r, g.CheckWatchdog(ctx, fake(dir, c))
		}
		return r, trees[c.Name].Arm(ctx, fake(dir, c))
	case "owe":
		return r, trees[c.Name].Owe(ctx, []byte(dir))
	case "settle":
		trees[c.Name].Settle(true)
		return r, nil
	case "end":
		return r, trees[c.Name].End(ctx)
	case "finish":
		return r, g.Finish(c.Epoch)
	case "share": // and accept nothing
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return r, err
		}
		file, err := l.(*net.TCPListener).File()
		if err != nil {
			return r, err
		}
		r.ID.Name = l.Addr().String()
		shared = append(shared, l)
		return r, g.Share(file, []byte(c.Name))
	case "serve":
		return r, bothServe(ctx, g, len(trees))
	case "over":
		<-g.Over(c.Epoch)
		return r, g.Cause(c.Epoch)
	}
	return r, errors.ErrUnsupported
}

// fake is a fake watchdog that a command names.
func fake(dir string, c command) Watchdog {
	return Watchdog{Path: filepath.Join(dir, c.Script+"watchdog"), Timeout: fakeTimeout, After: fakeAfter}
}
