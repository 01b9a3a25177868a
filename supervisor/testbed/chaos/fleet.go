package main

import (
	"errors"
	"fmt"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/tick"
)

// node is a host with a supervisor.
type node struct {
	name   string
	host   *kit.Host
	file   string
	keys   keyring
	sup    *kit.Supervisor
	off    bool           // it has no power
	down   bool           // its supervisor was ended on purpose, and not started again yet
	harm   int            // faults at work on it
	cuts   int            // of them, those of the network
	edits  map[string]int // of its config, by service
	broken bool           // its config cannot be read
	trio   int            // how many of the supervisor and its guardians were killed or frozen in this burst
}

// fleet is all nodes. World.mu guards them.
type fleet struct {
	*world
	nodes []*node
}

// build makes the nodes, without power.
func (fl *fleet) build() {
	for _, name := range []string{"a", "b", "c"} {
		n := &node{name: name, host: fl.stage.Lab.Host(fl.Program, name), off: true, down: true, edits: map[string]int{}}
		n.keys = fl.secrets.ring(n.host)
		fl.must(fl.configs.rewrite(n))
		fl.nodes = append(fl.nodes, n)
	}
}

// start starts a node's supervisor unless it runs, or cannot.
func (fl *fleet) start(n *node) {
	if n.off || n.sup != nil && n.sup.Running() {
		return
	}
	if !n.down {
		fl.record.wrongly("end", "the supervisor on "+n.name+" ended by itself")
	}
	n.down = false
	fl.configs.mended(n)
	from := tick.Now()
	n.sup = n.host.Understudy(fl, "run", "--config", n.file)
	fl.record.lives(n, from)
}

// again starts a supervisor as a service manager would: once the former one has ended.
func (fl *fleet) again(n *node) {
	if n.sup.Running() && n.down {
		return // the healing waits for it
	}
	fl.start(n)
}

// boot gives a node power.
func (fl *fleet) boot(n *node) {
	if n.off {
		n.host.PowerOn(fl.world)
		n.host.Heal(fl.world)
		n.off, n.down = false, true
	}
	fl.start(n)
}

// heal ends the faults of all nodes.
func (fl *fleet) heal() {
	for _, n := range fl.nodes {
		fl.configs.mended(n)
		n.harm, n.cuts = 0, 0
		if !n.off {
			n.host.Heal(fl.world)
		}
		fl.boot(n)
	}
}

// cutPower ends all that runs on a node.
func (fl *fleet) cutPower(n *node) {
	n.off, n.down = true, true
	n.host.PowerOff(fl.world)
}

// victim is mostly the node on which some service is active, and that service's run.
func (fl *fleet) victim(s *struck) *node {
	service := services[s.dice.IntN(len(services))].name
	n := fl.nodes[s.dice.IntN(len(fl.nodes))]
	if s.dice.IntN(4) > 0 {
		for _, r := range fl.book.running()[service] {
			n = fl.node(r.Node)
		}
	}
	return n
}

func (fl *fleet) node(name string) *node {
	for _, n := range fl.nodes {
		if n.name == name {
			return n
		}
	}
	panic("no node " + name)
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

// wholeAgain forgets what was done to the guardians.
func (fl *fleet) wholeAgain() {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	for _, n := range fl.nodes {
		n.trio = 0
	}
}

// unready asks ZooKeeper who does not stand.
func (fl *fleet) unready() string {
	for _, s := range serviceNames() {
		for _, n := range fl.nodes {
			m, ok := fl.member(s, n.name)
			if !ok || m.Role != "standby" && m.Role != "active" {
				return fmt.Sprintf("%s on %s: it is %q", s, n.name, m.Role)
			}
		}
	}
	return ""
}

// member asks ZooKeeper, for a moment.
func (fl *fleet) member(service, name string) (kit.Node, bool) {
	m, err := within(2*time.Second, func() (kit.Node, error) {
		m, ok := fl.look.Member(service, name)
		if !ok {
			return m, errors.New("there is none")
		}
		return m, nil
	})
	return m, err == nil
}
