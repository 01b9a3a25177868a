package sim

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"understudy/election"
)

// Failsafe services, and what their promises rest on: that the whole ensemble is gone, or looks so to some, while nodes come
// and go and their own links fail.

// failsafe draws which services may outlast ZooKeeper. It has a stream of its own: seeds of before are what they were.
func (p *Plan) failsafe() {
	r := rand.New(rand.NewPCG(p.Seed, 2))
	p.Failsafe = make([]bool, p.Services)
	if r.IntN(3) > 0 {
		return
	}
	p.Agents = true
	for n := range p.Failsafe {
		p.Failsafe[n] = n == 0 || r.IntN(2) == 0
	}
	if p.Services > 1 && r.IntN(2) == 0 {
		p.Failsafe[0], p.Failsafe[1] = p.Failsafe[1], p.Failsafe[0]
	}
}

// outages tells whether any service may outlast ZooKeeper.
func (p *Plan) outages() bool {
	for _, f := range p.Failsafe {
		if f {
			return true
		}
	}
	return false
}

// What an ensemble's loss is like.
const (
	allServers = iota // they are down
	allHosts          // all hosts are cut off, and come back one by one
	allButOne         // one host is not
	lossWays
)

// What happens besides.
const (
	justGone = iota
	standbyCrashes
	standbyBoots
	hostsPart // after a while they do not reach each other either
	hostsSlow // they take long to hear each other
	lossTwists
)

var lossNames = [...]string{"all servers are down", "all hosts are cut off", "all hosts but one are cut off"}

var twistNames = [...]string{"", ", a node is killed", ", a host boots", ", hosts are parted later", ", hosts hear each other late"}

func (f Fault) loss() (way, twist int) { return f.Way % lossWays, f.N % lossTwists }

// loseEnsemble has no node, or only one, see ZooKeeper for a while.
func (sf *serverFaults) loseEnsemble(f Fault) (end func(), done bool) {
	way, twist := f.loss()
	sf.mu.Lock()
	unready := sf.plan.Calm && (!sf.allListed() || time.Since(sf.nemesis.hosts.upgraded) < sf.plan.Timeout) // a term that goes on lists them anew
	if !unready {
		sf.outages++
	}
	sf.mu.Unlock()
	if unready {
		return nil, false
	}
	sf.say("%v", f)
	var ends []func()
	at := f.For * time.Duration(4+f.N/4096%5) / 8
	if way == allServers {
		for _, s := range sf.zk.servers {
			s.Down()
		}
		ends = append(ends, func() {
			for _, s := range sf.zk.servers {
				s.Up()
			}
		})
	}
	for n, node := range sf.nodes {
		if way == allServers || way == allButOne && n == f.N/8%sf.plan.Nodes || n != node.host.index {
			continue
		}
		back := sync.OnceFunc(sf.nemesis.links.disturbLink(Fault{Kind: CutLink, Node: n, Server: -1, Way: cutBoth, For: f.For}))
		ends = append(ends, back)
		switch early := f.N / (64 << n) % 4; {
		case twist == hostsPart || twist == hostsSlow:
			if n == f.Node { // it may take over, while the others still count on what it has promised
				time.AfterFunc(at, back)
			}
		case early > 0: // else with the others
			time.AfterFunc(f.For*time.Duration(early)/4, back)
		}
	}
	switch twist {
	case standbyCrashes, standbyBoots:
		time.AfterFunc(at, func() { sf.unsettle(sf.nodes[f.Node], twist) })
	case hostsPart:
		undo := &late{set: func(sign int) {
			for _, h := range sf.hosts {
				sf.nemesis.links.part(func(other *host) bool { return other == h }, sign)
			}
		}}
		ends = append(ends, undo.end)
		time.AfterFunc(at, undo.begin)
		time.AfterFunc(at, func() { sf.unsettle(sf.nodes[f.Node], standbyCrashes) })
	case hostsSlow:
		slow := sf.plan.Timeout / 13 // more than a promise is counted on too little, and little enough to be answered in time
		set := func(sign int) {
			for _, h := range sf.hosts {
				for _, n := range sf.nodes {
					sf.net.change(h.index, agentsFrom+n.index, func(l *link) { l.down.slow += time.Duration(sign) * slow })
				}
			}
		}
		set(1)
		ends = append(ends, func() { set(-1) })
		undo := &late{set: func(sign int) {
			for _, h := range sf.hosts {
				sf.nemesis.links.part(func(other *host) bool { return other == h }, sign)
			}
		}}
		ends = append(ends, undo.end)
		time.AfterFunc(at, undo.begin)
	}
	return func() {
		sf.say("over: %v", f)
		for _, end := range ends {
			end()
		}
		sf.mu.Lock()
		defer sf.mu.Unlock()
		sf.outages--
	}, true
}

// late is a disturbance that begins later, unless it was ended before.
type late struct {
	mu    sync.Mutex // guards the fields below
	on    bool
	ended bool
	set   func(sign int)
}

func (l *late) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.on = true
		l.set(1)
	}
}

func (l *late) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.on && !l.ended {
		l.set(-1)
	}
	l.ended = true
}

// unsettle ends a supervisor, or its host, and starts it again at once.
func (sf *serverFaults) unsettle(n *node, twist int) {
	sf.mu.Lock()
	defer sf.mu.Unlock()
	if sf.course.over || sf.course.quiet || n.inc == nil {
		return
	}
	if twist == standbyBoots {
		n.host.powerOff()
		n.host.powerOn()
		return
	}
	if n.inc.mayLose(1) {
		sf.say("%s: supervisor %d is killed", n.name, n.inc.number)
		n.crash(true)
		n.start()
	}
}

// allListed tells whether all services go on by everybody's promise, should ZooKeeper be gone. World.mu is held.
func (sf *serverFaults) allListed() bool {
	for _, v := range sf.check.services {
		if len(v.living) == 0 || !v.crumb.failsafe.Binds() {
			return false
		}
	}
	return sf.allAsked()
}

// allAsked tells whether everybody would have to promise who could start a service that goes on without ZooKeeper: whoever is
// not listed in the breadcrumb knows of that by the breadcrumb alone. World.mu is held.
func (sf *serverFaults) allAsked() bool {
	for _, v := range sf.check.services {
		for p := range v.living {
			if !v.crumb.failsafe.Binds() {
				continue
			}
			for _, n := range sf.nodes {
				if n.name != p.tree.node && !slices.ContainsFunc(v.crumb.failsafe.Members, func(m election.Peer) bool { return m.Node == n.name }) {
					return false
				}
			}
		}
	}
	return true
}

// outlasts tells whether something runs by promises whose breadcrumb is lost: who is started now cannot know of it. World.mu is
// held.
func (c *checker) outlasts() bool {
	for _, v := range c.services {
		for p := range v.living {
			if c.sessions.lost[p.tree.session] && (!v.crumb.there || v.crumb.session != election.SessionName(p.tree.session)) {
				return true
			}
		}
	}
	return false
}
