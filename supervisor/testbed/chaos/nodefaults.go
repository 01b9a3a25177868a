package main

import (
	"syscall"
	"time"

	"understudy/supervisor/testbed/kit"
)

// victim is mostly the node on which some service is active, and that service's run.
func (w *world) victim(s *struck) *node {
	service := services[s.dice.IntN(len(services))].name
	n := w.nodes[s.dice.IntN(len(w.nodes))]
	if s.dice.IntN(4) > 0 {
		for _, r := range w.book.running()[service] {
			n = w.node(r.Node)
		}
	}
	return n
}

func (w *world) node(name string) *node {
	for _, n := range w.nodes {
		if n.name == name {
			return n
		}
	}
	panic("no node " + name)
}

// on says whom the fault befalls.
func (s *struck) on(n *node) {
	s.node, s.Node, s.Target = n, n.name, n.name
}

// watched tells whether so many more of a supervisor and its guardians may be killed or frozen. Two of the three at most in
// one burst: of all three at once nothing is promised.
func (n *node) watched(more int) bool {
	if n.off || n.sup == nil || !n.sup.Running() || n.trio+more > 2 {
		return false
	}
	n.trio += more
	return true
}

// killSupervisor kills so many: the supervisor, and perhaps a guardian at the same instant.
func killSupervisor(many int) func(*world, *struck) func() {
	return func(w *world, s *struck) func() {
		n := w.victim(s)
		if s.on(n); !n.watched(many) {
			return nil
		}
		pids := []int{n.sup.Pid}
		if guardians := n.sup.Guardians(); many == 2 && len(guardians) > 0 {
			pids = append(pids, guardians[s.dice.IntN(len(guardians))])
		}
		n.down = true
		kit.KillAtOnce(pids...)
		return func() { w.again(n) }
	}
}

// again starts a supervisor as a service manager would: once the former one has ended.
func (w *world) again(n *node) {
	if n.sup.Running() && n.down {
		return // the healing waits for it
	}
	w.start(n)
}

func stopSupervisor(w *world, s *struck) func() {
	n := w.victim(s)
	if s.on(n); !n.watched(1) {
		return nil
	}
	n.down = true
	n.sup.Signal(syscall.SIGTERM)
	return func() { w.again(n) }
}

// upgradeSupervisor has a supervisor become another image of its process, whatever else happens to it meanwhile.
func upgradeSupervisor(w *world, s *struck) func() {
	n := w.victim(s)
	if s.on(n); !n.watched(1) || len(n.sup.Guardians()) == 0 {
		return nil // or it is still the shell that becomes it: that one would die of the signal
	}
	n.sup.Signal(syscall.SIGUSR2)
	return func() {}
}

func freezeSupervisor(w *world, s *struck) func() {
	n := w.victim(s)
	if s.on(n); !n.watched(1) {
		return nil
	}
	sup := n.sup
	sup.Signal(syscall.SIGSTOP)
	return func() { sup.Signal(syscall.SIGCONT) }
}

func killAll(w *world, s *struck) func() {
	var pids []int
	for _, n := range w.nodes {
		if n.watched(1) {
			n.down = true
			pids = append(pids, n.sup.Pid)
		}
	}
	if s.Target = "all"; len(pids) == 0 {
		return nil
	}
	kit.KillAtOnce(pids...)
	return func() {
		for _, n := range w.nodes {
			w.again(n)
		}
	}
}

func killGuardians(many int) func(*world, *struck) func() {
	return func(w *world, s *struck) func() {
		n := w.victim(s)
		if s.on(n); !n.watched(many) {
			return nil
		}
		guardians := n.sup.Guardians()
		s.dice.Shuffle(len(guardians), func(i, j int) { guardians[i], guardians[j] = guardians[j], guardians[i] })
		kit.KillAtOnce(guardians[:min(many, len(guardians))]...)
		return func() {}
	}
}

func freezeGuardian(w *world, s *struck) func() {
	n := w.victim(s)
	if s.on(n); !n.watched(1) {
		return nil
	}
	guardians := n.sup.Guardians()
	if len(guardians) == 0 {
		return nil
	}
	pid := guardians[s.dice.IntN(len(guardians))]
	kit.Signal(syscall.SIGSTOP, pid)
	return func() {
		if kit.IsGuardian(pid) {
			kit.Signal(syscall.SIGCONT, pid)
		}
	}
}

// signalProgram sends a signal to the main process of some service's program.
func (w *world) signalProgram(s *struck, service string, sig syscall.Signal) bool {
	for _, r := range w.book.running()[service] {
		if pid := w.book.pid(r); pid != 0 {
			s.Node, s.Service, s.Target = r.Node, service, service+" on "+r.Node
			kit.Signal(sig, pid)
			return true
		}
	}
	return false
}

func program(sig syscall.Signal) func(*world, *struck) func() {
	return func(w *world, s *struck) func() {
		if !w.signalProgram(s, services[s.dice.IntN(len(services))].name, sig) {
			return nil
		}
		return func() {}
	}
}

var (
	killProgram = program(syscall.SIGKILL)
	failProgram = program(syscall.SIGUSR1)
)

// crashProgram makes a program fail whenever it has run for a moment, wherever that is.
func crashProgram(w *world, s *struck) func() {
	service := services[s.dice.IntN(len(services))].name
	if !w.signalProgram(s, service, syscall.SIGUSR1) {
		return nil
	}
	s.Node, s.Target = "", service
	enough, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		again := time.NewTicker(300 * time.Millisecond)
		defer again.Stop()
		for {
			select {
			case <-again.C:
				w.signalProgram(&struck{}, service, syscall.SIGUSR1)
			case <-enough:
				return
			}
		}
	}()
	return func() { close(enough); <-over }
}

func losePower(w *world, s *struck) func() {
	n := w.victim(s)
	if s.on(n); n.off {
		return nil
	}
	w.cutPower(n)
	return func() { w.boot(n) }
}

// losePowerUnfenced takes the power from where the service runs that has to be fenced, while the switch is out of order.
func losePowerUnfenced(w *world, s *struck) func() {
	running := w.book.running()[fenced]
	if len(running) == 0 {
		return nil
	}
	n := w.node(running[0].Node)
	if s.on(n); n.off {
		return nil
	}
	w.power.broken = true
	w.cutPower(n)
	return func() { w.power.broken = false; w.boot(n) }
}

// deleteLock is what an operator should not do. It is not waited for: there may be no quorum.
func deleteLock(w *world, s *struck) func() {
	service := services[s.dice.IntN(len(services))].name
	s.Service, s.Target = service, service
	for _, r := range w.book.running()[service] {
		s.Target += " (on " + r.Node + ")"
	}
	path := w.look.Path("services", service, "ActiveStandbyElectorLock")
	go func() { _ = w.look.Conn().Delete(path, -1) }()
	return func() {}
}
