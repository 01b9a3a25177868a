package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"understudy/election"
	"understudy/fencing"
	"understudy/fencing/agent"
	"understudy/supervisor/child"
	"understudy/supervisor/service"
	"understudy/supervisor/wait"
	"understudy/supervisor/witness"
)

// Agent is where this node can be asked to end a child, by the node that holds the lock now.
type Agent struct {
	Listen    string // host:port; without a host, on all addresses
	Advertise string // where others reach it; default: by the address that ZooKeeper is reached from
	Keys      *agent.Keys
	Files     agent.Files // where the guardians find them

	Open func(ctx context.Context) (net.Listener, error)          // nil: TCP at Listen
	Dial func(ctx context.Context, addr string) (net.Conn, error) // nil: TCP
}

// keepAgent answers until ctx ends. Until the guardians of a former supervisor are gone they hold the address, and answer.
func (s *supervisor) keepAgent(ctx context.Context) {
	log := s.log.Named("agent")
	server := &agent.Server{
		Keys: s.cfg.Agent.Keys, Logger: log, Vouch: s.vouch, Promise: s.promise,
		Self: agent.Answer{Node: s.self.Node, Machine: s.self.Machine, Boot: s.self.Boot},
	}
	for told := false; ctx.Err() == nil; {
		l, err := s.listen(ctx)
		if err == nil {
			log.Info("listening", "address", l.Addr().String())
			s.promises.Listening(s.cfg.Machine.Now())
			s.lend(ctx, l)
			err = server.Serve(ctx, l)
			told = false
		}
		if err != nil && ctx.Err() == nil && !told {
			told = true
			log.Error("other nodes cannot ask whether a child here is dead, trying again", "error", err)
		}
		wait.For(ctx, 200*time.Millisecond)
	}
}

// listen opens the address, or takes it over from a former image of this process: its guardians hold it.
func (s *supervisor) listen(ctx context.Context) (net.Listener, error) {
	if s.left == nil || s.left.Agent != s.cfg.Agent.Listen {
		return s.cfg.Agent.open(ctx)
	}
	s.left.Agent = "" // once
	file, err := s.guard.Lent()
	if err != nil {
		return nil, fmt.Errorf("take the listener over: %w", err)
	}
	if file == nil {
		return s.cfg.Agent.open(ctx)
	}
	defer file.Close()
	return net.FileListener(file)
}

func (a *Agent) open(ctx context.Context) (net.Listener, error) {
	if a.Open != nil {
		return a.Open(ctx)
	}
	var listen net.ListenConfig
	return listen.Listen(ctx, "tcp", a.Listen)
}

// lend gives the guardians what they need to answer in place of a supervisor that is dead or frozen.
func (s *supervisor) lend(ctx context.Context, l net.Listener) {
	select {
	case <-s.guarded:
	case <-ctx.Done():
		return
	}
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return
	}
	err := func() error {
		as := witness.Note{Node: s.self.Node, Files: s.cfg.Agent.Files}
		if keys := s.cfg.Agent.Keys; keys.Secrets != nil {
			secrets, err := keys.Secrets()
			if err != nil {
				return err
			}
			as.Secrets = secrets
		}
		file, err := tcp.File()
		if err != nil {
			return err
		}
		note, err := json.Marshal(as)
		if err != nil {
			return errors.Join(err, file.Close())
		}
		return s.guard.Lend(file, note)
	}()
	if err != nil {
		s.log.Warn("the guardians cannot answer in place of this supervisor", "error", err)
	}
}

// vouch answers a question that was proved to come from a node that holds the lock.
func (s *supervisor) vouch(ctx context.Context, q agent.Question) (fencing.Verdict, string, error) {
	w := witness.At{
		Node: s.self.Node, Host: child.Host{Machine: s.self.Machine, Boot: s.self.Boot}, End: s.cfg.Machine.KillTree, Look: s.cfg.Machine.Outlasted,
	}
	if t := s.treeOf(q); t != nil {
		w.End = func(ctx context.Context, _ json.RawMessage) error { return t.Kill(ctx, q.By, q.ByToken) }
	}
	return w.Vouch(ctx, q.Node, q.Machine, q.Boot, q.Tree, q.Seen)
}

func (s *supervisor) treeOf(q agent.Question) *service.Tree {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.services {
		if v.Name() == q.Service {
			return v.Tree(q.Tree)
		}
	}
	return nil
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
