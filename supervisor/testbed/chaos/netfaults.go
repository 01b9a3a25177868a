package main

import (
	"fmt"

	"understudy/supervisor/testbed/kit"
)

// network is a fault of a node's network. Of several at once on one node, all last as long as the last.
func network(fault func(w *world, n *node)) func(*world, *struck) func() {
	return func(w *world, s *struck) func() {
		n := w.fleet.victim(s)
		if s.on(n); n.off {
			return nil
		}
		return n.sever(w, fault)
	}
}

// sever lets a fault befall the node's network, and returns what ends it.
func (n *node) sever(w *world, fault func(w *world, n *node)) func() {
	fault(w, n)
	n.cuts++
	return func() {
		if n.cuts = max(0, n.cuts-1); n.cuts == 0 && !n.off {
			n.host.Heal(w)
		}
	}
}

func cutFromOne(w *world, s *struck) func() {
	z := w.ensemble.servers[s.dice.IntN(len(w.ensemble.servers))]
	undo := network(func(w *world, n *node) { n.host.CutFrom(w, z.host.Addr) })(w, s)
	s.Target += " from " + z.host.Name
	return undo
}

func losePackets(w *world, s *struck) func() {
	percent := 5 + s.dice.IntN(40)
	undo := network(func(w *world, n *node) { n.host.Lose(w, percent) })(w, s)
	s.Target += fmt.Sprintf(", %d%%", percent)
	return undo
}

func slowLine(w *world, s *struck) func() {
	rate := 24 + s.dice.IntN(100)
	undo := network(func(w *world, n *node) { n.host.Slow(w, fmt.Sprint(rate, "kbit")) })(w, s)
	s.Target += fmt.Sprintf(", %d kbit/s", rate)
	return undo
}

// hurts says which servers cannot be counted on.
func (s *struck) hurts(all ...*server) {
	s.hurt = all
	for i, z := range all {
		if i > 0 {
			s.Target += " "
		}
		s.Target += z.host.Name
	}
}

type cut func(w *world, h *kit.Host, others []string)

func cutBoth(w *world, h *kit.Host, others []string) { h.CutFrom(w, others...) }
func cutOut(w *world, h *kit.Host, others []string)  { h.Mute(w, others...) }
func cutIn(w *world, h *kit.Host, others []string)   { h.Deafen(w, others...) }

// parted loses what one server and the other two say to each other, or one direction of it. The supervisors still reach
// all three. The other two are counted on.
func parted(leader bool, how cut) func(*world, *struck) func() {
	return func(w *world, s *struck) func() {
		z := w.ensemble.seat(s, leader)
		if z == nil {
			return nil
		}
		how(w, z.host, w.stage.Others(z.index))
		s.hurts(z)
		z.cuts++
		return func() {
			if z.cuts--; z.cuts == 0 {
				z.host.Heal(w)
			}
		}
	}
}

func killServers(many int, leader bool) func(*world, *struck) func() {
	return func(w *world, s *struck) func() {
		z := w.ensemble.seat(s, leader)
		if z == nil {
			return nil
		}
		var all []*server
		for i := range many {
			all = append(all, w.ensemble.servers[(z.index+i)%len(w.ensemble.servers)])
		}
		s.hurts(all...)
		for _, z := range all {
			w.must(w.stage.ZK.Kill(z.index))
		}
		return func() {
			for _, z := range all {
				if w.stage.ZK.PID(z.index) == 0 {
					w.must(w.stage.ZK.StartServer(z.index))
				}
			}
		}
	}
}

func freezeServer(leader bool) func(*world, *struck) func() {
	return func(w *world, s *struck) func() {
		z := w.ensemble.seat(s, leader)
		if z == nil || w.stage.ZK.PID(z.index) == 0 {
			return nil
		}
		w.must(w.stage.ZK.Freeze(z.index))
		s.hurts(z)
		pid := w.stage.ZK.PID(z.index)
		return func() {
			if pid == w.stage.ZK.PID(z.index) { // else it was killed meanwhile
				w.must(w.stage.ZK.Thaw(z.index))
			}
		}
	}
}
