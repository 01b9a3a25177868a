package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/election/zkmem"
	"understudy/supervisor/control"
	"understudy/supervisor/wait"
)

const (
	service        = "demo"
	root           = "/understudy"
	tick           = 200 * time.Millisecond
	sessionTimeout = 2 * time.Second
	lookEvery      = 100 * time.Millisecond
	stopPatience   = 8 * time.Second
)

// stage is everything that runs: ZooKeeper, the nodes, and who looks at them.
type stage struct {
	dir   string
	zk    string // address of the embedded ZooKeeper
	argv  []string
	signs // of life
	nodes []*node

	status atomic.Pointer[control.ServiceStatus] // by the newest look
}

// perform builds the stage, calls play, and takes everything down again, however play ends. The calling goroutine is bound
// to its thread: supervisors end with the thread that started them.
func perform(ctx context.Context, cfg Config, play func(*stage) error) (err error) {
	s := &stage{}
	if s.dir, err = os.MkdirTemp("", "understudy-demo-"); err != nil {
		return fmt.Errorf("make a place for logs: %w", err)
	}
	defer os.RemoveAll(s.dir)

	server := zkmem.New(zkmem.Config{TickTime: tick})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for ZooKeeper: %w", err)
	}
	s.zk = listener.Addr().String()
	var work sync.WaitGroup
	defer work.Wait()
	defer server.Close()
	work.Go(func() { _ = server.Serve(listener) })

	s.signs = signs(s.dir)
	s.argv = append([]string{"--", cfg.Exe, "demo", "program", s.dir, "--"}, cfg.Command...)

	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	watched := make(chan error, 1)
	work.Go(func() { watched <- s.watch(watching) })

	defer s.endAll(cfg.Hurry) // they give their locks back, so they go before what leads to ZooKeeper
	for i := range cfg.Nodes {
		n := &node{name: fmt.Sprintf("node-%d", i+1)}
		n.log = filepath.Join(s.dir, n.name+".log")
		if n.gate, err = newGate(); err != nil {
			return err
		}
		work.Go(func() { _ = server.Serve(n.gate) })
		s.nodes = append(s.nodes, n)
		if err := s.start(n, cfg.Exe); err != nil {
			return err
		}
	}
	err = play(s)
	select {
	case failed := <-watched:
		err = errors.Join(err, failed)
	default:
	}
	return err
}

// start starts a node's supervisor.
func (s *stage) start(n *node, exe string) error {
	argv := []string{
		exe, "run", "--zk", n.gate.Addr().String(), "--root", root, "--service", service, "--node", n.name,
		"--session-timeout", sessionTimeout.String(), "--grace", "500ms", "--stop-timeout", "5s", "--restart", "always",
	}
	return n.start(append(argv, s.argv...))
}

// watch keeps what ZooKeeper says current, by a look now and then past the gates.
func (s *stage) watch(ctx context.Context) error {
	cluster, err := control.Open(ctx, election.Config{
		Servers: []string{s.zk}, Root: root, Timeout: 4 * time.Second, Logger: hclog.NewNullLogger(),
	})
	if err != nil {
		return err
	}
	defer cluster.Close()
	for {
		status, err := cluster.Status(ctx)
		if err == nil && len(status.Services) > 0 {
			s.status.Store(&status.Services[0])
		}
		if !wait.For(ctx, lookEvery) {
			return nil
		}
	}
}

func (s *stage) says() control.ServiceStatus {
	if now := s.status.Load(); now != nil {
		return *now
	}
	return control.ServiceStatus{}
}

// role is what a node says of itself; empty when ZooKeeper does not know it.
func (s *stage) role(name string) election.Role {
	for _, m := range s.says().Members {
		if m.Node == name {
			return m.Role
		}
	}
	return ""
}

// active is the node whose program runs, once ZooKeeper and the program agree on it.
func (s *stage) active() (*node, life, bool) {
	says := s.says()
	l, ok := newest(s.lives())
	if !ok || says.Active != l.node || says.Token != l.token {
		return nil, life{}, false
	}
	for _, n := range s.nodes {
		if n.name == l.node && n.was(now()) == up {
			return n, l, true
		}
	}
	return nil, life{}, false
}

// settled tells whether one node is active and all others stand by.
func (s *stage) settled() bool {
	active, _, ok := s.active()
	if !ok {
		return false
	}
	for _, n := range s.nodes {
		if n != active && (n.was(now()) != up || s.role(n.name) != election.RoleStandby) {
			return false
		}
	}
	return true
}

// endAll ends every supervisor: in good order, or at once when that takes too long or the user is in a hurry.
func (s *stage) endAll(hurry <-chan struct{}) {
	for _, n := range s.nodes {
		n.gate.set(false)
		if n.running() {
			_ = n.signal(syscall.SIGTERM)
			_ = n.signal(syscall.SIGCONT)
		}
	}
	patience := time.After(stopPatience)
	for _, n := range s.nodes {
		gone := n.gone()
		if gone == nil {
			continue
		}
		select {
		case <-gone:
			continue
		case <-hurry:
		case <-patience:
			patience = time.After(0)
		}
		_ = n.signal(syscall.SIGKILL)
		<-gone
	}
}

// lastWords are those of all nodes, for when the show fails.
func (s *stage) lastWords() string {
	var b strings.Builder
	for _, n := range s.nodes {
		for _, line := range n.lastWords(5) {
			fmt.Fprintf(&b, "%s: %s\n", n.name, line)
		}
	}
	return b.String()
}
