package supervisor

import (
	"context"
	"encoding/json"
	"net"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/fencing"
	"understudy/fencing/agent"
	"understudy/supervisor/child/box"
	"understudy/supervisor/failsafe"
	"understudy/supervisor/host"
	"understudy/supervisor/service"
	"understudy/supervisor/wait"
	"understudy/supervisor/witness"
)

// Agent is the address at which the node that now holds the lock can ask this node to kill a child.
type Agent struct {
	Listen    string // host:port; without a host, on all addresses
	Advertise string // where others reach it; default: the address from which this node reaches ZooKeeper
	Keys      *agent.Keys

	Open func(ctx context.Context) (net.Listener, error)          // nil: TCP at Listen
	Dial func(ctx context.Context, addr string) (net.Conn, error) // nil: TCP
}

// answerer answers other nodes, which ask it to prove a child dead, or for a promise.
type answerer struct {
	root     string // of the cluster in ZooKeeper
	cfg      *Agent
	self     election.Node
	machine  host.Machine
	promises *failsafe.Promises
	tree     func(service string, id json.RawMessage) *service.OwnTree // one that this supervisor made, or nil
	log      hclog.Logger
}

// answerAll answers until ctx ends.
func (a *answerer) answerAll(ctx context.Context) {
	log := a.log.Named("agent")
	server := &agent.Server{
		Keys: a.cfg.Keys, Logger: log, Prove: a.prove, Promise: a.promise,
		Self: agent.Answer{Node: a.self.Node, Machine: a.self.Machine, Boot: a.self.Boot},
	}
	for told := false; ctx.Err() == nil; {
		l, err := a.cfg.open(ctx)
		if err == nil {
			log.Info("listening", "address", l.Addr().String())
			a.promises.Listening(a.machine.Now())
			err = server.Serve(ctx, l)
			told = false
		}
		if err != nil && ctx.Err() == nil && !told {
			told = true
			log.Error("the fencing agent cannot listen, trying again: other nodes cannot ask whether a program here is dead",
				"listen", a.cfg.Listen, "error", err)
		}
		wait.For(ctx, 200*time.Millisecond)
	}
}

// open opens the address.
func (a *Agent) open(ctx context.Context) (net.Listener, error) {
	if a.Open != nil {
		return a.Open(ctx)
	}
	var listen net.ListenConfig
	return listen.Listen(ctx, "tcp", a.Listen)
}

// prove answers an authenticated question of the node that holds the lock.
func (a *answerer) prove(ctx context.Context, q agent.Question) (fencing.Liveness, string, error) {
	w := witness.Prover{
		Node: a.self.Node, Host: box.Host{Machine: a.self.Machine, Boot: a.self.Boot}, End: a.machine.KillTree,
		Look: a.machine.Outlasted, PendingEffects: a.machine.PendingEffects,
	}
	if t := a.tree(q.Service, q.Tree); t != nil {
		w.PendingEffects, w.End = nil, func(ctx context.Context, _ json.RawMessage) error { return t.Kill(ctx, q.By, q.ByToken) }
	}
	return w.Prove(ctx, q.Target(a.root))
}

// promise answers a request for a promise.
func (a *answerer) promise(q agent.PromiseRequest) error {
	err := a.promises.Give(q, a.machine.Now())
	if err != nil {
		a.log.Info("did not agree to what another node asked for (failsafe)", "service", q.Service, "asked_by", q.By, "why", err)
		return err
	}
	a.log.Debug("agreed not to start a service", "service", q.Service, "to", q.By, "its_token", q.Token, "for", q.For)
	return nil
}

// answerer makes this node's answerer.
func (s *supervisor) answerer() *answerer {
	return &answerer{
		cfg: s.cfg.Agent, root: s.cfg.Root, self: s.self, machine: s.cfg.Machine, promises: s.promises,
		tree: s.roster.tree, log: s.log,
	}
}

// address is where others reach the agent, empty without one.
func (a *Agent) address(sess *election.Session) string {
	switch {
	case a == nil:
		return ""
	case a.Advertise != "":
		return a.Advertise
	}
	host, port, err := net.SplitHostPort(a.Listen)
	if err != nil {
		return ""
	}
	if ip := net.ParseIP(host); host != "" && (ip == nil || !ip.IsUnspecified()) {
		return a.Listen
	}
	from, ok := sess.LocalAddr().(*net.TCPAddr)
	if !ok {
		return ""
	}
	return net.JoinHostPort(from.IP.String(), port)
}
