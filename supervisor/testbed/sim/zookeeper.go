package sim

import (
	"net"
	"slices"
	"time"

	"understudy/election/jute"
	"understudy/supervisor/testbed/zkfaults"
)

// zookeeper is the servers of a world: one alone, or an ensemble.
type zookeeper struct {
	servers  []*zkfaults.Server
	ensemble *zkfaults.Ensemble // nil for one alone
}

func (w *world) newZooKeeper() *zookeeper {
	p := w.plan
	cfg := zkfaults.Config{TickTime: p.Tick, MinTimeout: p.Timeout / 4, MaxTimeout: p.Timeout * 10, Observe: w.check.committed}
	if p.Servers == 1 {
		return &zookeeper{servers: []*zkfaults.Server{zkfaults.New(cfg)}}
	}
	rng := w.stream("ensemble")
	e := zkfaults.NewEnsemble(cfg, zkfaults.EnsembleConfig{Size: p.Servers, Observers: p.Observers, SyncLimit: p.SyncLimit, Latency: func() time.Duration {
		return drawn(rng, p.Latency)
	}})
	z := &zookeeper{ensemble: e}
	for n := range p.all() {
		z.servers = append(z.servers, e.Server(n))
	}
	return z
}

func (z *zookeeper) close() {
	if z.ensemble != nil {
		_ = z.ensemble.Close()
		return
	}
	_ = z.servers[0].Close()
}

func (z *zookeeper) wipe() {
	if z.ensemble != nil {
		z.ensemble.Wipe()
		return
	}
	z.servers[0].Wipe()
}

// some is the servers that a fault is about.
func (z *zookeeper) some(server int) []*zkfaults.Server {
	if server < 0 || server >= len(z.servers) {
		return z.servers
	}
	return z.servers[server : server+1]
}

// newLeader has the leader restart.
func (z *zookeeper) newLeader() {
	n := 0
	if z.ensemble != nil {
		n = max(0, z.ensemble.Leader())
	}
	z.servers[n].ElectLeader()
}

func (w *world) serve(server int, c net.Conn) bool {
	if server >= agentsFrom {
		return w.knock(w.nodes[server-agentsFrom], c)
	}
	w.wait.Go(func() { w.zk.servers[server].ServeConn(c) })
	return true
}

// restart has servers be down for a while.
func (sf *serverFaults) restart(f Fault) (end func(), done bool) {
	sf.say("%v", f)
	for _, s := range sf.zk.some(f.Server) {
		s.Down()
	}
	return func() {
		sf.say("over: %v", f)
		for _, s := range sf.zk.some(f.Server) {
			s.Up()
		}
	}, true
}

func (sf *serverFaults) loseData(f Fault) (end func(), done bool) {
	if !sf.mayWipe() {
		return nil, false
	}
	if f.N%3 == 0 {
		return sf.wipeUnseen(f)
	}
	sf.say("zk: all data is lost")
	sf.wipe()
	if f.N%3 == 1 {
		sf.unsettle(sf.nodes[f.N/3%len(sf.nodes)], standbyCrashes)
	}
	return nil, true
}

func (sf *serverFaults) breakReply(f Fault) {
	op, how := f.broken()
	m := zkfaults.Match{Op: op}
	for _, s := range sf.zk.some(f.Server) {
		switch how {
		case "close before":
			s.CloseBefore(m)
		case "close after":
			s.CloseAfter(m)
		case "loss of the reply":
			s.LoseReply(m)
		default:
			i := slices.IndexFunc(refusals, func(c jute.Code) bool { return c.Error() == how })
			s.Refuse(m, refusals[i])
		}
	}
}

// disturbEnsemble is faults between servers.
func (sf *serverFaults) disturbEnsemble(f Fault) (end func(), done bool) {
	e := sf.zk.ensemble
	if e == nil {
		return nil, false
	}
	from, to := f.between(sf.plan.all())
	sf.say("%v", f)
	var undo func()
	switch f.Kind {
	case IsolateServer:
		undo = e.Isolate(from)
	case CutServers:
		undo = e.Cut(from, to)
	default:
		undo = e.Slow(from, to, f.slowness())
	}
	return func() { sf.say("over: %v", f); undo() }, true
}

// between is which servers a fault lies between.
func (f Fault) between(servers int) (from, to int) {
	from = f.N % servers
	return from, (from + 1 + f.N/8%max(1, servers-1)) % servers
}

// wipeUnseen loses all data while a node has a service no more, and gives it back to the node.
func (sf *serverFaults) wipeUnseen(f Fault) (end func(), done bool) {
	sf.mu.Lock()
	defer sf.mu.Unlock()
	restore, done := sf.operator.reconfigure(Fault{Kind: ChangeConfig, Node: f.Node, Way: removeHere, N: f.N / 3})
	if !done {
		return nil, false
	}
	time.AfterFunc(f.For/4, func() {
		if sf.mayWipe() {
			sf.say("zk: all data is lost")
			sf.wipe()
		}
	})
	return func() {
		sf.mu.Lock()
		defer sf.mu.Unlock()
		restore()
	}, true
}

// mayWipe tells whether the loss of all data now would leave the promises in force: they bind only nodes that were
// connected before it. Hence every supervisor runs, and has been a candidate.
func (sf *serverFaults) mayWipe() bool {
	sf.mu.Lock()
	defer sf.mu.Unlock()
	return sf.allKnow()
}

// allKnow tells whether every supervisor would notice that data is lost. World.mu is held.
func (sf *serverFaults) allKnow() bool {
	for _, n := range sf.nodes {
		if n.inc == nil || len(n.inc.stood) < sf.plan.Services {
			return false
		}
	}
	return sf.allAsked()
}

// wipe loses all data.
func (sf *serverFaults) wipe() {
	sf.mu.Lock()
	sf.check.wiped()
	sf.keepDown()
	sf.mu.Unlock()
	sf.elected()
	sf.zk.wipe()
}

// elected notes the newest election of a leader, whatever data there is, and returns it.
func (sf *serverFaults) elected() int64 {
	newest := int64(0)
	for _, s := range sf.zk.servers {
		newest = max(newest, s.Zxid()>>32)
	}
	sf.mu.Lock()
	defer sf.mu.Unlock()
	sf.newest = max(sf.newest, newest)
	return sf.newest
}

// keepDown has no supervisor start that could not know of a loss before all leases of before have ended. World.mu is held.
func (sf *serverFaults) keepDown() {
	for _, n := range sf.nodes {
		n.down = time.Now().Add(sf.plan.longest() + sf.plan.Tick)
	}
}
