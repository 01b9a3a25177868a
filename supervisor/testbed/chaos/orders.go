package main

import (
	"os"
	"path/filepath"
	"syscall"
	"time"

	"understudy/supervisor/testbed/chaos/history"
	"understudy/supervisor/testbed/kit"
)

// What operators and editors of the config do is no fault, and keeps no promise from being kept.

// desk is where operators sit.
type desk struct {
	*world
	host   *kit.Host
	keys   keyring
	file   string         // their config
	paused map[string]int // orders at work, by service; world.mu guards it
}

func (d *desk) build() {
	d.host = d.stage.Lab.Host(d.Program, "desk")
	d.keys, d.file = d.secrets.ring(d.host), filepath.Join(d.dir, "desk.yaml")
	d.must(os.WriteFile(d.file, []byte(d.configs.cluster("desk", d.keys)+"services: {}\n"), 0o600))
	d.paused = map[string]int{}
}

// pauseService has nobody promoted for a while. The order stands from the moment that ZooKeeper acknowledged it, if it did.
func pauseService(w *world, s *struck) func() {
	service := services[s.dice.IntN(len(services))].name
	s.Service, s.Target = service, service
	path := w.look.Path("services", service, "control")
	w.desk.paused[service]++
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
					w.desk.resumed(history.Pause{Service: service, From: from, To: stat.Mzxid})
					return
				}
				time.Sleep(50 * time.Millisecond) // until a quorum serves
			}
		}()
	}
}

func (d *desk) resumed(p history.Pause) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.paused[p.Service]--
	d.record.resumed(p)
}

// giveOrder has an operator give an order, and not wait for its end: with Ctrl-C, or killed.
func giveOrder(verb string) func(*world, *struck) func() {
	return func(w *world, s *struck) func() {
		service := services[s.dice.IntN(len(services))].name
		s.Service, s.Target = service, service
		words := []string{verb, service, "--timeout", "10s", "--config", w.desk.file}
		if verb == "switchover" && s.dice.IntN(3) > 0 { // also to one that looks unfit, or is dead
			to := w.fleet.nodes[s.dice.IntN(len(w.fleet.nodes))].name
			words = append(words, "--force", "--to", to)
			s.Target += " to " + to
		}
		command := w.desk.host.Understudy(w, words...)
		end := []syscall.Signal{syscall.SIGINT, syscall.SIGKILL}[s.dice.IntN(2)]
		return func() { command.Signal(end) }
	}
}

// editConfig changes one service's environment on one node: where it is active it is started anew, the others are left alone.
func editConfig(w *world, s *struck) func() {
	n := w.fleet.nodes[s.dice.IntN(len(w.fleet.nodes))]
	service := services[s.dice.IntN(len(services))].name
	s.Node, s.Service, s.Target = n.name, service, service+" on "+n.name
	n.edits[service]++
	w.must(w.configs.rewrite(n))
	return func() {}
}

// breakConfig leaves a file for a while that cannot be read: nothing may come of it.
func breakConfig(w *world, s *struck) func() {
	n := w.fleet.nodes[s.dice.IntN(len(w.fleet.nodes))]
	s.Node, s.Target = n.name, n.name
	if n.off || n.down || n.broken {
		return nil // a supervisor that starts needs a config
	}
	n.broken = true
	w.must(os.WriteFile(n.file, []byte("services: [\n"), 0o600))
	return func() { w.configs.mended(n) }
}
