package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/tick"
)

// network is a fault of a node's network. The first of several on one node that is undone undoes all.
func network(cut func(w *world, h *kit.Host)) strike {
	return onNode(func(w *world, _ *stroke, n *node) func() {
		cut(w, n.host)
		return func() { w.rejoin(n) }
	})
}

// rejoin undoes all faults of a node's network.
func (w *world) rejoin(n *node) {
	if !n.off {
		n.host.Heal(w)
	}
}

func cutFromOne(w *world, s *stroke) (func(), error) {
	z := w.stage.Hosts[s.dice.IntN(len(w.stage.Hosts))]
	undo, err := network(func(w *world, h *kit.Host) { h.CutFrom(w, z.Addr) })(w, s)
	s.target += " from " + z.Name
	return undo, err
}

func losePackets(w *world, s *stroke) (func(), error) {
	percent := 5 + s.dice.IntN(40)
	undo, err := network(func(w *world, h *kit.Host) { h.Lose(w, percent) })(w, s)
	s.target += fmt.Sprintf(", %d%%", percent)
	return undo, err
}

func slowLine(w *world, s *stroke) (func(), error) {
	rate := 24 + s.dice.IntN(100)
	undo, err := network(func(w *world, h *kit.Host) { h.Slow(w, fmt.Sprint(rate, "kbit")) })(w, s)
	s.target += fmt.Sprintf(", %d kbit/s", rate)
	return undo, err
}

// part loses what one server and the other two send each other, or one direction of it. The nodes still reach all three.
func part(leader bool, cut func(h *kit.Host, tb testing.TB, others ...string)) strike {
	return func(w *world, s *stroke) (func(), error) {
		i, err := w.server(s, leader)
		if err != nil {
			return nil, err
		}
		h := w.stage.Hosts[i]
		cut(h, w, w.stage.Others(i)...)
		return func() { h.Heal(w) }, nil
	}
}

// fenced is the service whose previous node is switched off before another takes over.
const fenced = "fenced"

// power is the switch that fencing turns hosts off with. It may be out of order. World.mu guards it.
type power struct {
	url    string
	broken bool
}

// serve answers until the program ends.
func (p *power) serve(w *world) {
	l, err := net.Listen("tcp", net.JoinHostPort(w.stage.Lab.Addr(), "0"))
	w.must(err)
	p.url = "http://" + l.Addr().String() + "/"
	server := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if err := p.off(w, strings.TrimPrefix(r.URL.Path, "/")); err != nil {
			http.Error(rw, err.Error(), http.StatusServiceUnavailable)
		}
	})}
	go func() { _ = server.Serve(l) }() // ends when it is closed
	w.Cleanup(func() { server.Close() })
}

// off turns a host off for as long as the burst lasts.
func (p *power) off(w *world, name string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.node(name)
	if p.broken {
		return errors.New("the switch is out of order")
	}
	if !n.off {
		w.struck(&stroke{fault: &fault{name: fencedOff}, at: tick.Now(), target: name})
		w.cutPower(n)
	}
	return nil
}

// cutPower ends all that runs on a node.
func (w *world) cutPower(n *node) {
	n.off, n.down = true, true
	n.host.PowerOff(w)
}

func losePower(w *world, _ *stroke, n *node) func() {
	w.cutPower(n)
	return func() { w.boot(n) }
}

// losePowerUnfenced takes the power from the node where the fenced service runs, while the switch is out of order.
func losePowerUnfenced(w *world, s *stroke) (func(), error) {
	r, ok := w.running()[fenced]
	if !ok || w.node(r.Node).off {
		return nil, errDown
	}
	n := w.node(r.Node)
	s.target = n.name
	w.power.broken = true
	w.cutPower(n)
	return func() { w.power.broken = false; w.boot(n) }, nil
}
