package main

import (
	"syscall"
	"time"

	"understudy/supervisor/testbed/kit"
)

// on says whom the fault befalls.
func (s *struck) on(n *node) {
	s.node, s.Node, s.Target = n, n.name, n.name
}

// killSupervisor kills so many: the supervisor, and perhaps a guardian at the same instant.
func killSupervisor(many int) func(*world, *struck) func() {
	return func(w *world, s *struck) func() {
		n := w.fleet.victim(s)
		if s.on(n); !n.watched(many) {
			return nil
		}
		pids := []int{n.sup.Pid}
		if guardians := n.sup.Guardians(); many == 2 && len(guardians) > 0 {
			pids = append(pids, guardians[s.dice.IntN(len(guardians))])
		}
		n.down = true
		kit.KillAtOnce(pids...)
		return func() { w.fleet.again(n) }
	}
}

func stopSupervisor(w *world, s *struck) func() {
	n := w.fleet.victim(s)
	if s.on(n); !n.watched(1) {
		return nil
	}
	n.down = true
	n.sup.Signal(syscall.SIGTERM)
	return func() { w.fleet.again(n) }
}

// upgradeSupervisor has a supervisor become another image of its process, whatever else happens to it meanwhile.
func upgradeSupervisor(w *world, s *struck) func() {
	n := w.fleet.victim(s)
	if s.on(n); !n.watched(1) || len(n.sup.Guardians()) == 0 {
		return nil // or it is still the shell that becomes it: that one would die of the signal
	}
	n.sup.Signal(syscall.SIGUSR2)
	return func() {}
}

func freezeSupervisor(w *world, s *struck) func() {
	n := w.fleet.victim(s)
	if s.on(n); !n.watched(1) {
		return nil
	}
	sup := n.sup
	sup.Signal(syscall.SIGSTOP)
	return func() { sup.Signal(syscall.SIGCONT) }
}

func killAll(w *world, s *struck) func() {
	var pids []int
	for _, n := range w.fleet.nodes {
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
		for _, n := range w.fleet.nodes {
			w.fleet.again(n)
		}
	}
}

func killGuardians(many int) func(*world, *struck) func() {
	return func(w *world, s *struck) func() {
		n := w.fleet.victim(s)
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
	n := w.fleet.victim(s)
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
func (fl *fleet) signalProgram(s *struck, service string, sig syscall.Signal) bool {
	for _, r := range fl.book.running()[service] {
		if pid := fl.book.pid(r); pid != 0 {
			s.Node, s.Service, s.Target = r.Node, service, service+" on "+r.Node
			kit.Signal(sig, pid)
			return true
		}
	}
	return false
}

func program(sig syscall.Signal) func(*world, *struck) func() {
	return func(w *world, s *struck) func() {
		if !w.fleet.signalProgram(s, services[s.dice.IntN(len(services))].name, sig) {
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
	if !w.fleet.signalProgram(s, service, syscall.SIGUSR1) {
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
				w.fleet.signalProgram(&struck{}, service, syscall.SIGUSR1)
			case <-enough:
				return
			}
		}
	}()
	return func() { close(enough); <-over }
}

func losePower(w *world, s *struck) func() {
	n := w.fleet.victim(s)
	if s.on(n); n.off {
		return nil
	}
	w.fleet.cutPower(n)
	return func() { w.fleet.boot(n) }
}

// losePowerUnfenced takes the power from where the service runs that has to be fenced, while the switch is out of order.
func losePowerUnfenced(w *world, s *struck) func() {
	running := w.book.running()[fenced]
	if len(running) == 0 {
		return nil
	}
	n := w.fleet.node(running[0].Node)
	if s.on(n); n.off {
		return nil
	}
	w.power.broken = true
	w.fleet.cutPower(n)
	return func() { w.power.broken = false; w.fleet.boot(n) }
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
