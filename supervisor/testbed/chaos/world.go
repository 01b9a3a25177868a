package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"

	"understudy/supervisor/testbed/chaos/history"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/tick"
	"understudy/supervisor/testbed/zktest"
)

const root = "/chaos"

// world is all that faults befall, and the record of them.
type world struct {
	keeper
	dir   string // where everything that is kept goes
	self  string // this program
	child string
	store string // its address

	stage *kit.Stage
	book  *book
	look  *kit.Cluster
	power *power
	tasks tasks

	desk desk

	mu        sync.Mutex // guards the fields below, and is held by who does or undoes something
	nodes     []*node
	paused    map[string]int // orders at work, by service
	over      bool           // the time of faults is
	ensemble  ensemble
	secrets   secrets
	strangers meddlers
	record    record
}

func newWorld(program *kit.Program, means means) *world {
	w := &world{keeper: keeper{Program: program}}
	w.ensemble, w.secrets = ensemble{world: w}, secrets{world: w, means: means}
	w.strangers, w.record = meddlers{world: w}, record{world: w}
	return w
}

// desk is where operators sit.
type desk struct {
	host *kit.Host
	keys keyring
	file string // their config
}

// ensemble is ZooKeeper's servers.
type ensemble struct {
	*world
	servers []*server
	granted int  // which of grants servers grant from their next starts on
	serving bool // false from a healing until all servers serve, which takes them as long as it takes
}

// keeper is the testing.TB of the supervisors alone: their logs outlive it.
type keeper struct {
	*kit.Program
	logs string
}

// TempDir is where the supervisors' logs go.
func (k keeper) TempDir() string { return k.logs }

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

// server is one of ZooKeeper's.
type server struct {
	index int
	host  *kit.Host
	harm  int
	cuts  int
}

// build makes the network, the servers and the store, and starts a supervisor on each node.
func (w *world) build() {
	w.child = kit.ChildBinary(w)
	kit.UnderstudyBinary(w)
	w.stage = kit.NewStage(w.Program, 3, zktest.Config{TickTime: tickTime})
	for i, h := range w.stage.Hosts {
		w.ensemble.servers = append(w.ensemble.servers, &server{index: i, host: h})
	}
	w.look = kit.Look(w, w.stage.Servers, root)
	w.book = newBook(w)
	at := w.stage.Lab.Host(w.Program, "store")
	w.store = net.JoinHostPort(at.Addr, "7000")
	at.Run(w, w.self, modeStore, w.store, w.book.journal)
	w.desk.host = w.stage.Lab.Host(w.Program, "desk")
	w.power = newPower(w)
	w.tasks.over = make(chan struct{})
	w.Cleanup(w.tasks.end)
	w.secrets.newKeys()
	w.must(w.look.Conn().AddAuth("digest", []byte(w.secrets.keys.zk)))
	w.desk.keys, w.desk.file = w.secrets.ring(w.desk.host), filepath.Join(w.dir, "desk.yaml")
	w.must(os.WriteFile(w.desk.file, []byte(w.cluster("desk", w.desk.keys)+"services: {}\n"), 0o600))
	w.must(os.WriteFile(w.tokenFile(), []byte(newSecret()+"\n"), 0o600))
	w.secrets.changes = changes()
	w.paused, w.ensemble.granted = map[string]int{}, len(grants)-1
	w.record.past = history.History{Began: tick.Now(), Services: serviceNames(), Bounds: bounds}
	for _, name := range []string{"a", "b", "c"} {
		n := &node{name: name, host: w.stage.Lab.Host(w.Program, name), off: true, down: true, edits: map[string]int{}}
		n.keys = w.secrets.ring(n.host)
		w.must(w.rewrite(n))
		w.nodes = append(w.nodes, n)
		w.record.past.Nodes = append(w.record.past.Nodes, name)
	}
}

// start starts a node's supervisor unless it runs, or cannot.
func (w *world) start(n *node) {
	if n.off || n.sup != nil && n.sup.Running() {
		return
	}
	if !n.down {
		w.record.wrong = append(w.record.wrong, history.Violation{What: "end", At: tick.Now(), Text: "the supervisor on " + n.name + " ended by itself"})
	}
	n.down = false
	w.mended(n)
	from := tick.Now()
	n.sup = n.host.Understudy(w, "run", "--config", n.file)
	i := len(w.record.past.Lives)
	w.record.past.Lives = append(w.record.past.Lives, history.Life{Node: n.name, Pid: n.sup.Pid, From: from})
	go func(s *kit.Supervisor) {
		<-s.Ended()
		at := tick.Now()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.record.past.Lives[i].To = at
	}(n.sup)
}

// boot gives a node power.
func (w *world) boot(n *node) {
	if n.off {
		n.host.PowerOn(w)
		n.host.Heal(w)
		n.off, n.down = false, true
	}
	w.start(n)
}

// cutPower ends all that runs on a node.
func (w *world) cutPower(n *node) {
	n.off, n.down = true, true
	n.host.PowerOff(w)
}

// heal ends all faults.
func (w *world) heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.power.broken, w.ensemble.serving = false, false
	for _, z := range w.ensemble.servers {
		z.harm, z.cuts = 0, 0
		z.host.Heal(w)
		if w.stage.ZK.PID(z.index) == 0 {
			w.must(w.stage.ZK.StartServer(z.index))
		}
	}
	for _, n := range w.nodes {
		w.mended(n)
		n.harm, n.cuts = 0, 0
		if !n.off {
			n.host.Heal(w)
		}
		w.boot(n)
	}
	w.record.mark()
}

func (w *world) must(err error) {
	if err != nil {
		w.Fatal(err)
	}
}

// wanting says what is missing until everything is well; it starts again what is down. Two guardians at work make a node
// whole.
func (w *world) wanting() string {
	w.mu.Lock()
	for _, n := range w.nodes {
		if n.off || !n.sup.Running() {
			w.boot(n)
			w.record.mark()
			w.mu.Unlock()
			return "a supervisor on " + n.name
		}
		if len(n.sup.Guardians()) != 2 {
			w.mu.Unlock()
			return "two guardians on " + n.name
		}
	}
	w.mu.Unlock()
	running := w.book.running()
	for _, s := range w.record.past.Services {
		if len(running[s]) != 1 {
			return fmt.Sprintf("one program of %s, there are %d", s, len(running[s]))
		}
	}
	return w.unready()
}

// unready asks ZooKeeper who does not stand.
func (w *world) unready() string {
	for _, s := range w.record.past.Services {
		for _, n := range w.nodes {
			m, ok := w.member(s, n.name)
			if !ok || m.Role != "standby" && m.Role != "active" {
				return fmt.Sprintf("%s on %s: it is %q", s, n.name, m.Role)
			}
		}
	}
	return ""
}

// wholeAgain forgets what was done to the guardians.
func (w *world) wholeAgain() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.nodes {
		n.trio = 0
	}
}
