package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"syscall"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/tick"
)

// node is a host with a supervisor. World.mu guards it.
type node struct {
	name   string
	host   *kit.Host
	file   string // its config
	keys   keyring
	sup    *kit.Supervisor
	off    bool           // it has no power
	down   bool           // its supervisor was ended on purpose, and not started again yet
	hit    int            // how many of the supervisor and its guardians were killed or frozen in this burst
	edits  map[string]int // of its config, by service
	broken bool           // its config cannot be read
}

func (w *world) newNode(name string) *node {
	n := &node{name: name, host: w.stage.Lab.Host(w.Program, name), off: true, down: true, edits: map[string]int{}}
	n.file, n.keys = filepath.Join(w.logs, name+".yaml"), w.ring()
	return n
}

// boot gives a node power, and starts its supervisor as a service manager would, once the previous one has ended.
func (w *world) boot(n *node) {
	if n.off {
		n.host.PowerOn(w)
		n.off, n.down = false, true
		w.rejoin(n)
	}
	if n.sup != nil && n.sup.Running() {
		return
	}
	if !n.down {
		w.find("ended: the supervisor on %s ended without an order", n.name)
	}
	n.down = false
	w.mend(n)
	n.sup = n.host.Understudy(w, "run", "--config", n.file)
	ended := n.sup.Ended()
	w.tasks.Go(func() { <-ended; w.bury(n) })
}

func (w *world) node(name string) *node {
	for _, n := range w.nodes {
		if n.name == name {
			return n
		}
	}
	panic("no node " + name)
}

var errDown = errors.New("its victim is down already")

// onNode is a fault of a node, mostly the one on which some service is active.
func onNode(do func(w *world, s *stroke, n *node) (undo func())) strike {
	return func(w *world, s *stroke) (func(), error) {
		n, service := w.nodes[s.dice.IntN(len(w.nodes))], w.any(s)
		if s.dice.IntN(4) > 0 {
			for _, r := range service.running() {
				n = w.node(r.Node)
			}
		}
		if n.off || n.down || !n.sup.Running() {
			return nil, errDown
		}
		s.target = n.name
		return do(w, s, n), nil
	}
}

// guarded is a fault of so many of a supervisor and its guardians. Two of the three at most in one burst: of all three at once
// nothing is promised.
func guarded(more int, do func(w *world, s *stroke, n *node) (undo func())) strike {
	return func(w *world, s *stroke) (undo func(), err error) {
		undo, no := onNode(func(w *world, s *stroke, n *node) func() {
			if len(n.sup.Guardians()) != 2 || n.hit+more > 2 {
				err = errDown
				return nil
			}
			n.hit += more
			return do(w, s, n)
		})(w, s)
		return undo, errors.Join(no, err)
	}
}

// watch is a supervisor and its guardians, in this order.
func (n *node) watch() []int { return append([]int{n.sup.Pid}, n.sup.Guardians()...) }

// kill kills some of the three at the same instant, and starts the supervisor again when it is undone.
func kill(places ...int) func(*world, *stroke, *node) func() {
	return func(w *world, _ *stroke, n *node) func() {
		var pids []int
		for _, i := range places {
			pids = append(pids, n.watch()[i])
			n.down = n.down || i == 0
		}
		kit.KillAtOnce(pids...)
		return func() { w.boot(n) }
	}
}

func freeze(place int) func(*world, *stroke, *node) func() {
	return func(_ *world, _ *stroke, n *node) func() {
		pid := n.watch()[place]
		line := kit.CommandLine(pid)
		kit.Signal(syscall.SIGSTOP, pid)
		return func() {
			if kit.CommandLine(pid) == line { // otherwise it was killed since
				kit.Signal(syscall.SIGCONT, pid)
			}
		}
	}
}

func stopSupervisor(w *world, _ *stroke, n *node) func() {
	n.down = true
	n.sup.Signal(syscall.SIGTERM)
	return func() { w.boot(n) }
}

// upgradeSupervisor has a supervisor exec its binary again, while other faults go on.
func upgradeSupervisor(_ *world, _ *stroke, n *node) func() {
	n.sup.Signal(syscall.SIGUSR2)
	return nil
}

func killAll(w *world, _ *stroke) (func(), error) {
	var pids []int
	for _, n := range w.nodes {
		if !n.off && n.sup.Running() && n.hit < 2 {
			n.hit, n.down = n.hit+1, true
			pids = append(pids, n.sup.Pid)
		}
	}
	kit.KillAtOnce(pids...)
	return nil, nil // the healing starts them again
}

// service is what runs, and what its config has beside the command.
type service struct {
	*kit.Accounts
	name  string
	lines string
	words []string // of the program, see testbed/child
}

// any is some service.
func (w *world) any(s *stroke) *service { return w.services[s.dice.IntN(len(w.services))] }

// running is every run that gave a sign of life just now.
func (s *service) running() (all []kit.Run) {
	for _, r := range s.Runs() {
		if tick.Now()-r.Last < int64(4*moment) {
			all = append(all, r)
		}
	}
	return all
}

// signal sends a signal to the main process of a service's program, and returns the node where it runs.
func (s *service) signal(sig syscall.Signal) (node string, err error) {
	for _, r := range s.running() {
		if strings.Contains(kit.CommandLine(r.Pid), "dir="+filepath.Dir(s.File("x"))+" ") {
			kit.Signal(sig, r.Pid)
			return r.Node, nil
		}
	}
	return "", errDown
}

func signalProgram(sig syscall.Signal) strike {
	return func(w *world, s *stroke) (func(), error) {
		service := w.any(s)
		node, err := service.signal(sig)
		s.target = service.name + " on " + node
		return nil, err
	}
}

// crashProgram makes a program fail whenever it has run for a moment, wherever that is.
func crashProgram(w *world, s *stroke) (func(), error) {
	service := w.any(s)
	s.target = service.name
	return w.beside(func(ctx context.Context) {
		for sleep(ctx, 3*moment) {
			_, _ = service.signal(syscall.SIGUSR1) // it may not have started again yet
		}
	}), nil
}
