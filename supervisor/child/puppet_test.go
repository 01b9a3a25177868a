package child

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child/box"
	"understudy/supervisor/child/inside"
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
