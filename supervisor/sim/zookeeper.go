package sim

import (
	"net"
	"strings"
	"time"

	"understudy/election"
	"understudy/election/jute"
	"understudy/election/zkmem"
)

// zookeeper is the servers of a world: one alone, or an ensemble.
type zookeeper struct {
	servers  []*zkmem.Server
	ensemble *zkmem.Ensemble // nil for one alone
}

func (w *world) newZooKeeper() *zookeeper {
	p := w.plan
	cfg := zkmem.Config{TickTime: p.Tick, MinTimeout: p.Timeout / 4, MaxTimeout: p.Timeout * 10, Observe: w.check.committed, Granted: w.granted}
	if p.Servers == 1 {
		return &zookeeper{servers: []*zkmem.Server{zkmem.New(cfg)}}
	}
	rng := w.stream("ensemble")
	e := zkmem.NewEnsemble(cfg, zkmem.EnsembleConfig{Size: p.Servers, SyncLimit: p.SyncLimit, Latency: func() time.Duration {
		return drawn(rng, p.Latency)
	}})
	z := &zookeeper{ensemble: e}
	for n := range p.Servers {
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
func (z *zookeeper) some(server int) []*zkmem.Server {
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

// disturbServer is faults of ZooKeeper, and acts of an operator upon it.
func (w *world) disturbServer(f Fault) (end func(), done bool) {
	paths := election.Paths{Root: root, Service: w.plan.services()[f.N%w.plan.Services]}
	switch f.Kind {
	case RestartServer:
		w.say("%v", f)
		for _, s := range w.zk.some(f.Server) {
			s.Down()
		}
		return func() {
			w.say("over: %v", f)
			for _, s := range w.zk.some(f.Server) {
				s.Up()
			}
		}, true
	case NewLeader:
		w.say("zk: a new leader")
		w.zk.newLeader()
	case BreakReply:
		w.say("%v", f)
		w.breakReply(f)
	case LoseData:
		if !w.mayWipe() {
			return nil, false
		}
		if f.N%3 == 0 {
			return w.wipeUnseen(f)
		}
		w.say("zk: all data is lost")
		w.wipe()
	case DeleteLock:
		return nil, w.deleteLock(paths.Service)
	case DeleteCrumb:
		if !w.mayStrike(paths.Service, paths.Crumb()) {
			return nil, false
		}
		w.operate(paths.Crumb())
	case DeleteNode:
		w.operate(root + "/nodes/" + w.nodes[f.Node].name)
	case WriteFolder:
		return nil, w.writeFolder(paths.Service)
	case DeleteService:
		return nil, w.deleteService(paths.Service)
	case IsolateServer, CutServers, SlowServers:
		return w.disturbEnsemble(f)
	}
	return nil, true
}

func (w *world) breakReply(f Fault) {
	op, how := f.broken()
	m := zkmem.Match{Op: op}
	for _, s := range w.zk.some(f.Server) {
		switch how {
		case "close before":
			s.CloseBefore(m)
		case "close after":
			s.CloseAfter(m)
		default:
			s.LoseReply(m)
		}
	}
}

// disturbEnsemble is faults between servers.
func (w *world) disturbEnsemble(f Fault) (end func(), done bool) {
	e := w.zk.ensemble
	if e == nil {
		return nil, false
	}
	from, to := f.between(w.plan.Servers)
	w.say("%v", f)
	var undo func()
	switch f.Kind {
	case IsolateServer:
		undo = e.Isolate(from)
	case CutServers:
		undo = e.Cut(from, to)
	default:
		undo = e.Slow(from, to, f.slowness())
	}
	return func() { w.say("over: %v", f); undo() }, true
}

// between is which servers a fault lies between.
func (f Fault) between(servers int) (from, to int) {
	from = f.N % servers
	return from, (from + 1 + f.N/8%max(1, servers-1)) % servers
}

// operate deletes a znode by hand, in a session of its own, from a place whose network is fine.
func (w *world) operate(path string) {
	w.say("operator: deletes %s", path)
	w.deleteByHand([]string{path}, jute.OpDelete, jute.PathVersion{Path: path, Version: -1})
}

// deleteByHand sends a request of an operator's that deletes these.
func (w *world) deleteByHand(paths []string, op jute.Op, request jute.Record) {
	w.mu.Lock()
	w.check.expect(paths, 1)
	w.mu.Unlock()
	_, unanswered := w.sendAsOperator(op, request)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.check.expect(paths, -1)
	for _, session := range unanswered {
		if !w.check.ended[session] {
			w.check.expect(paths, 1)
			w.check.late[session] = paths
		}
	}
}

// expect notes what an operator's request may delete.
func (c *checker) expect(paths []string, by int) {
	for _, path := range paths {
		c.byHand[path] += by
	}
}

// deleteLock is an operator deleting a service's lock, unless that would break the rules.
func (w *world) deleteLock(service string) bool {
	lock := election.Paths{Root: root, Service: service}.Lock()
	if !w.mayStrike(service, lock) {
		return false
	}
	w.operate(lock)
	return true
}

// mayStrike tells whether an operator may delete a service's lock or breadcrumb now: each guards while the other is away, so
// both have to be there. The breadcrumb has to name the session that has the lock, which is that of all that runs; while its
// holder is still fencing, nothing runs, and only the lock may go. Nor does one delete the breadcrumb of a failsafe service.
func (w *world) mayStrike(service, path string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := w.check.services[service]
	if w.over || !v.lock.there || !v.crumb.there {
		return false
	}
	if (v.crumb.failsafe.Binds() || w.check.meddled[v.lock.owner]) && strings.HasSuffix(path, "ActiveBreadCrumb") {
		return false // where ZooKeeper may be gone for whoever it names, or the lock before its time, it alone tells others of that
	}
	if v.crumb.session != election.SessionName(v.lock.owner) {
		return len(v.living) == 0 && !strings.HasSuffix(path, "ActiveBreadCrumb")
	}
	for p := range v.living {
		if p.tree.session != v.lock.owner || v.struck[p.token] {
			return false
		}
	}
	return true
}

// wipeUnseen loses all data while a node has a service no more, and gives it back to the node.
func (w *world) wipeUnseen(f Fault) (end func(), done bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	restore, done := w.reconfigure(Fault{Kind: ChangeConfig, Node: f.Node, Way: removeHere, N: f.N / 3})
	if !done {
		return nil, false
	}
	time.AfterFunc(f.For/4, func() {
		if w.mayWipe() {
			w.say("zk: all data is lost")
			w.wipe()
		}
	})
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		restore()
	}, true
}

// mayWipe tells whether the loss of all data now would leave the promises in force: they bind only nodes that were
// connected before it. Hence every supervisor runs, and has stood for election.
func (w *world) mayWipe() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.allKnow()
}

// allKnow tells whether every supervisor would notice that data is lost. World.mu is held.
func (w *world) allKnow() bool {
	for _, n := range w.nodes {
		if n.inc == nil || len(n.inc.stood) < w.plan.Services {
			return false
		}
	}
	return w.allAsked()
}

// wipe loses all data. No supervisor is started before all leases of before have ended.
func (w *world) wipe() {
	w.mu.Lock()
	w.check.wiped()
	w.keepDown()
	w.mu.Unlock()
	w.zk.wipe()
}

// keepDown has no supervisor start, which could not know of a loss, before all leases of before have ended. World.mu is held.
func (w *world) keepDown() {
	for _, n := range w.nodes {
		n.down = time.Now().Add(w.plan.longest() + w.plan.Tick)
	}
}
