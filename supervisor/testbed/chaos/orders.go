package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"understudy/supervisor/testbed/chaos/history"
)

// What operators and editors of the config do is no fault, and keeps no promise from being kept.

// pauseService has nobody promoted for a while. The order stands from the moment that ZooKeeper acknowledged it, if it did.
func pauseService(w *world, s *struck) func() {
	service := services[s.dice.IntN(len(services))].name
	s.Service, s.Target = service, service
	path := w.look.Path("services", service, "control")
	w.paused[service]++
	ordered := make(chan int64, 1)
	go func() {
		var zxid int64
		if stat, err := w.look.Conn().Set(path, []byte(`{"paused":true,"by":"chaos"}`), -1); err == nil {
			zxid = stat.Mzxid
		}
		ordered <- zxid
	}()
	return func() {
		go func() {
			from := <-ordered
			for {
				stat, err := w.look.Conn().Set(path, []byte(`{}`), -1)
				if err == nil {
					w.resumed(history.Pause{Service: service, From: from, To: stat.Mzxid})
					return
				}
				time.Sleep(50 * time.Millisecond) // until a quorum serves
			}
		}()
	}
}

// giveOrder has an operator give an order, and not wait for its end: with Ctrl-C, or killed.
func giveOrder(verb string) func(*world, *struck) func() {
	return func(w *world, s *struck) func() {
		service := services[s.dice.IntN(len(services))].name
		s.Service, s.Target = service, service
		words := []string{verb, service, "--timeout", "10s", "--config", w.desk.file}
		if verb == "switchover" && s.dice.IntN(3) > 0 { // also to one that looks unfit, or is dead
			to := w.nodes[s.dice.IntN(len(w.nodes))].name
			words = append(words, "--force", "--to", to)
			s.Target += " to " + to
		}
		command := w.desk.host.Understudy(w, words...)
		end := []syscall.Signal{syscall.SIGINT, syscall.SIGKILL}[s.dice.IntN(2)]
		return func() { command.Signal(end) }
	}
}

func (w *world) resumed(p history.Pause) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.paused[p.Service]--
	if p.From > 0 {
		w.record.past.Pauses = append(w.record.past.Pauses, p)
	}
	w.record.mark()
}

// editConfig changes one service's environment on one node: where it is active it is started anew, the others are left alone.
func editConfig(w *world, s *struck) func() {
	n := w.nodes[s.dice.IntN(len(w.nodes))]
	service := services[s.dice.IntN(len(services))].name
	s.Node, s.Service, s.Target = n.name, service, service+" on "+n.name
	n.edits[service]++
	w.must(w.rewrite(n))
	return func() {}
}

// breakConfig leaves a file for a while that cannot be read: nothing may come of it.
func breakConfig(w *world, s *struck) func() {
	n := w.nodes[s.dice.IntN(len(w.nodes))]
	s.Node, s.Target = n.name, n.name
	if n.off || n.down || n.broken {
		return nil // a supervisor that starts needs a config
	}
	n.broken = true
	w.must(os.WriteFile(n.file, []byte("services: [\n"), 0o600))
	return func() { w.mended(n) }
}

// mended puts the config back that a supervisor needs in order to start.
func (w *world) mended(n *node) {
	if n.broken {
		n.broken = false
		w.must(w.rewrite(n))
	}
}

// rewrite replaces a node's config as editors do.
func (w *world) rewrite(n *node) error {
	if n.broken {
		return nil // mended writes it
	}
	text := w.config(n)
	path := filepath.Join(w.dir, n.name+".yaml")
	if err := os.WriteFile(path+"~", []byte(text), 0o600); err != nil {
		return err
	}
	n.file = path
	return os.Rename(path+"~", path)
}

// preferred are lines that make a node the preferred one for a service.
func preferred(service, node string) string {
	switch {
	case service == "plain" && node == "b":
		return "priority: 10\n    failback: true"
	case service == "plain":
		return "failback: true"
	case service == "queued" && node == "c":
		return "priority: 5"
	}
	return ""
}

// indent puts lines below a service, and nothing where there are none.
func indent(lines string) string {
	if strings.TrimSpace(lines) == "" {
		return ""
	}
	return "    " + lines + "\n"
}
