package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"understudy/supervisor/testbed/chaos/history"
	"understudy/supervisor/testbed/kit/tick"
)

// power is the switch that fencing turns hosts off with. It may be out of order.
type power struct {
	w        *world
	listener net.Listener
	broken   bool // w.mu guards it
}

// fencedOff is a fault that Understudy itself asks for.
const fencedOff = "host powered off by fencing"

func newPower(w *world) *power {
	l, err := net.Listen("tcp", net.JoinHostPort(w.stage.Lab.Addr(), "0"))
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { l.Close() })
	p := &power{w: w, listener: l}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go p.answer(conn)
		}
	}()
	return p
}

func (p *power) addr() string { return p.listener.Addr().String() }

func (p *power) answer(conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	name, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return
	}
	_, _ = fmt.Fprintln(conn, p.off(strings.TrimSpace(name))) // who asked may be gone
}

// off turns a host off for as long as the burst of faults lasts.
func (p *power) off(name string) string {
	w := p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.fleet.nodes, func(n *node) bool { return n.name == name })
	switch {
	case p.broken:
		return "the switch is out of order"
	case i < 0:
		return "there is no host " + name
	case w.fleet.nodes[i].off:
		return "off"
	}
	f := history.Fault{Kind: fencedOff, Target: name, Node: name, From: tick.Now()}
	w.record.tell(f)
	w.fleet.cutPower(w.fleet.nodes[i])
	f.To = tick.Now()
	w.record.fault(f)
	return "off"
}

// askPower is the fencing command: it succeeds once the switch says that the host is off.
func askPower(addr string) error {
	conn, err := net.DialTimeout("tcp", addr, 2*time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(4 * time.Second))
	if _, err := fmt.Fprintln(conn, os.Getenv("UNDERSTUDY_TARGET_NODE")); err != nil {
		return err
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err
	}
	if answer = strings.TrimSpace(answer); answer != "off" {
		return fmt.Errorf("the power switch: %s", answer)
	}
	return nil
}
