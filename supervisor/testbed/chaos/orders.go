package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/go-zookeeper/zk"
)

// deleteLock is what an operator should not do.
func deleteLock(w *world, s *stroke) (func(), error) {
	service := w.any(s)
	s.target = service.name
	path := w.look.Path("services", service.name, "ActiveStandbyElectorLock")
	w.beside(func(context.Context) { _ = w.look.Conn().Delete(path, -1) }) // waits for a quorum; there may be no lock then
	return nil, nil
}

// pauseService turns automatic takeovers of a service off for a while. The order stands from the moment that ZooKeeper acknowledged
// it, if it did.
func pauseService(w *world, s *stroke) (func(), error) {
	service := w.any(s).name
	s.target = service
	path := w.look.Path("services", service, "control")
	return w.beside(func(ctx context.Context) {
		paused, given := w.look.Conn().Set(path, []byte(`{"paused":true,"by":"chaos"}`), -1)
		<-ctx.Done()
		for {
			resumed, err := w.look.Conn().Set(path, []byte(`{}`), -1)
			if err == nil && given == nil {
				w.mu.Lock()
				w.pauses = append(w.pauses, pause{service, paused.Mzxid, resumed.Mzxid})
				w.mu.Unlock()
			}
			if err == nil || errors.Is(err, zk.ErrClosing) {
				return
			}
			time.Sleep(moment) // until a quorum serves
		}
	}), nil
}

// orderTimeout is how long an operator's order stands.
const orderTimeout = 5 * time.Second

// giveOrder has an operator give an order, and not wait for its end: with Ctrl-C, or killed.
func giveOrder(verb string) strike {
	return func(w *world, s *stroke) (func(), error) {
		service := w.any(s).name
		s.target = service
		words := []string{verb, service, "--timeout", orderTimeout.String(), "--config", w.desk.file}
		if verb == "switchover" && s.dice.IntN(3) > 0 { // also to one that is unhealthy, or dead
			to := w.nodes[s.dice.IntN(len(w.nodes))].name
			words = append(words, "--force", "--to", to)
			s.target += " to " + to
		}
		command := w.desk.host.Understudy(w, words...)
		end := []syscall.Signal{syscall.SIGINT, syscall.SIGKILL}[s.dice.IntN(2)]
		return func() { command.Signal(end) }, nil
	}
}

// editConfig changes one service's environment on one node.
func editConfig(w *world, s *stroke) (func(), error) {
	n, service := w.nodes[s.dice.IntN(len(w.nodes))], w.any(s).name
	s.target = service + " on " + n.name
	n.edits[service]++
	return nil, w.rewrite(n)
}

// breakConfig leaves a file for a while that cannot be read.
func breakConfig(w *world, _ *stroke, n *node) func() {
	n.broken = true
	w.must(os.WriteFile(n.file, []byte("services: [\n"), 0o600))
	return func() { w.mend(n) }
}

func (w *world) mend(n *node) {
	if n.broken {
		n.broken = false
		w.must(w.rewrite(n))
	}
}

// rewrite replaces a node's config. One that is broken is written when it is mended.
func (w *world) rewrite(n *node) error {
	if n.broken {
		return nil
	}
	return replace(n.file, w.config(n))
}

// replace replaces a file in one step, as editors do.
func replace(path, text string) error {
	if err := os.WriteFile(path+"~", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(path+"~", path)
}

const (
	httpPort  = "8437"
	agentPort = "8438"
)

// cluster is the part of a config that operators need, too.
func (w *world) cluster(n *node) string {
	return fmt.Sprintf("node: %s\nzookeeper:\n  servers: [%s]\n  root: %s\n  lease: %v\n  auth: {scheme: digest, file: %q}\n",
		n.name, strings.Join(w.stage.Servers, ", "), root, session/2, n.keys.file(zkFile))
}

func (w *world) config(n *node) string {
	var b strings.Builder
	b.WriteString(w.cluster(n))
	fmt.Fprintf(&b, "log: {format: json}\nhttp: {listen: \":%s\", token_file: %q}\n", httpPort, n.keys.file(tokenFile))
	fmt.Fprintf(&b, "fencing: {agent: {listen: %q, secret_file: %q}}\n", net.JoinHostPort("", agentPort), n.keys.file(secretFile))
	fmt.Fprintf(&b, "defaults:\n  grace_delay: %v\n  stop_timeout: 3s\n  moves: {max: 0}\n", grace)
	fmt.Fprintf(&b, "  restart: {delay: 100ms, max_delay: 400ms, give_up_after: 4, within: 15s, rejoin_after: %v}\nservices:\n", rejoin)
	for _, s := range w.services {
		command := s.Child(append([]string{"every=3ms", "mutex=" + s.File("mutex")}, s.words...)...)
		fmt.Fprintf(&b, "  %s:\n    command: [%s]\n    %s\n    env: {EDITION: \"%d\"}\n", s.name, strings.Join(command, ", "), s.lines, n.edits[s.name])
		switch {
		case s.name == "plain":
			fmt.Fprintf(&b, "    failback: true\n    priority: %d\n", map[string]int{"b": 10}[n.name])
		case s.name == "queued" && n.name == "c":
			b.WriteString("    priority: 5\n")
		case s.name == fenced:
			fmt.Fprintf(&b, "    fencing: {on_failure: refuse, methods: [{http: {url: \"%s{node}\", timeout: 5s}}]}\n", w.power.url)
		}
	}
	return b.String()
}
