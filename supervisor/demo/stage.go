package demo

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/election/zkmem"
	"understudy/supervisor/control"
	"understudy/supervisor/keyfile"
	"understudy/supervisor/wait"
)

const root, lookEvery = "/understudy", 50 * time.Millisecond

// stage is everything that runs: ZooKeeper, the nodes, and who looks at them past the gates.
type stage struct {
	cfg     Config
	dir     string
	failed  bool   // the logs are of use
	zk      string // address of the embedded ZooKeeper
	signs          // of life
	nodes   []*node
	cluster *control.Cluster
}

// node is one supervisor, on a host of its own as far as it can tell.
type node struct {
	name    string
	page    string // where it serves HTTP
	gate    *gate
	process *os.Process   // the newest supervisor
	ended   chan struct{} // closed with it
}

func (s *stage) say(format string, args ...any) { fmt.Fprintf(s.cfg.Out, format+"\n", args...) }

// perform builds the stage, calls play, and takes everything down again, however play ends. The calling goroutine is bound
// to its thread: supervisors end with the thread that started them.
func perform(ctx context.Context, cfg Config, play func(*stage) error) error {
	dir, err := os.MkdirTemp("", "understudy-demo-")
	if err != nil {
		return fmt.Errorf("make a place for logs: %w", err)
	}
	s := &stage{cfg: cfg, dir: dir, signs: signs(dir)}
	defer func() { // the logs may be of use
		if !s.failed {
			_ = os.RemoveAll(dir)
		}
	}()
	server := zkmem.New(200 * time.Millisecond)
	var work sync.WaitGroup
	defer work.Wait()
	defer server.Close()
	own, err := newGate()
	if err != nil {
		return err
	}
	work.Go(func() { _ = server.Serve(own) })
	s.zk = own.Addr().String()
	s.cluster, err = control.Open(ctx,
		election.Config{Servers: []string{s.zk}, Root: root, Lease: 2 * time.Second, Logger: hclog.NewNullLogger()})
	if err != nil {
		return err
	}
	defer s.cluster.Close()
	defer s.endAll() // they give their locks back, so they go before what leads to ZooKeeper
	for i := range cfg.Nodes {
		n := &node{name: fmt.Sprintf("node-%d", i+1)}
		if n.gate, err = newGate(); err != nil {
			return err
		}
		work.Go(func() { _ = server.Serve(n.gate) })
		n.page = strings.Replace(n.gate.Addr().String(), "127.0.0.1", "127.0.0.2", 1) // this machine as well, where the port is free
		if err := s.start(n); err != nil {
			return err
		}
		s.nodes = append(s.nodes, n)
	}
	return play(s)
}

// start starts a node's supervisor.
func (s *stage) start(n *node) error {
	log, err := os.OpenFile(filepath.Join(s.dir, n.name+".log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("log of %s: %w", n.name, err)
	}
	defer log.Close()
	cmd := exec.Command(s.cfg.Exe, "run", "--zk", n.gate.Addr().String(), "--root", root, "--service", "demo", "--node", n.name,
		"--lease", "1s", "--grace", "500ms", "--stop-timeout", "5s", "--restart", "always")
	if s.cfg.Hold {
		cmd.Args = append(cmd.Args, "--http", n.page)
	}
	cmd.Args = append(append(cmd.Args, "--", s.cfg.Exe, "demo", "program", s.dir, "--"), s.cfg.Command...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "UNDERSTUDY_") })
	cmd.Env = append(cmd.Env, keyfile.RunVariable+"="+s.dir) // beside those of this machine's own supervisors, and of another demo
	// A group of its own: Ctrl-C is ours to pass on.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", n.name, err)
	}
	ended := make(chan struct{})
	n.process, n.ended = cmd.Process, ended
	go func() { // ends with the process, which endAll waits for
		_ = cmd.Wait()
		close(ended)
	}()
	return nil
}

// settled returns the node whose program runs, once ZooKeeper and the program agree on it and all others stand by.
func (s *stage) settled(ctx context.Context) (active *node, l life, ok bool) {
	l, ok = newest(s.lives())
	status, err := s.cluster.Status(ctx)
	if !ok || err != nil || len(status.Services) == 0 {
		return nil, l, false
	}
	v := status.Services[0]
	if v.Active != l.node || v.Token != l.token || now()-l.last > time.Second {
		return nil, l, false
	}
	for _, n := range s.nodes {
		i := slices.IndexFunc(v.Members, func(m control.MemberStatus) bool { return m.Node == n.name })
		switch {
		case n.name == l.node:
			active = n
		case wait.Closed(n.ended), i < 0, v.Members[i].Role != election.RoleStandby:
			return nil, l, false
		}
	}
	return active, l, active != nil
}

// endAll ends every supervisor: in good order, or at once when that takes too long or the user is in a hurry.
func (s *stage) endAll() {
	for _, n := range s.nodes {
		n.gate.set(false)
		_ = n.process.Signal(syscall.SIGTERM)
		_ = n.process.Signal(syscall.SIGCONT)
	}
	patience, enough := context.WithTimeout(context.Background(), 8*time.Second)
	defer enough()
	for _, n := range s.nodes {
		select {
		case <-n.ended:
			continue
		case <-s.cfg.Hurry:
		case <-patience.Done():
		}
		_ = n.process.Kill()
		<-n.ended
	}
}
