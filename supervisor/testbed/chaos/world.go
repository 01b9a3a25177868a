package main

import (
	"fmt"
	"sync"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/zktest"
)

const root = "/chaos"

// world is all that faults befall, and the record of them. Each part owns what it has, and sees the others through the world.
type world struct {
	keeper

	stage   *kit.Stage
	book    *book
	look    *kit.Cluster
	power   *power
	tasks   tasks
	configs configs

	mu        sync.Mutex // guards what faults and operators change below, and is held by the one who does or undoes something
	fleet     fleet
	desk      desk
	ensemble  ensemble
	secrets   secrets
	strangers meddlers
	record    record
}

func newWorld(program *kit.Program, means means) *world {
	w := &world{keeper: keeper{Program: program}}
	w.configs, w.fleet, w.desk = configs{world: w}, fleet{world: w}, desk{world: w}
	w.ensemble, w.secrets = ensemble{world: w}, secrets{world: w, means: means}
	w.strangers, w.record = meddlers{world: w}, record{world: w}
	return w
}

// keeper is the testing.TB of the supervisors alone: their logs outlive it.
type keeper struct {
	*kit.Program
	dir  string // where everything that is kept goes
	logs string
}

// TempDir is where the supervisors' logs go.
func (k keeper) TempDir() string { return k.logs }

// build makes the network, the servers, the store and the nodes.
func (w *world) build() {
	kit.UnderstudyBinary(w)
	w.stage = kit.NewStage(w.Program, 3, zktest.Config{TickTime: tickTime})
	w.ensemble.build()
	w.look = kit.Look(w, w.stage.Servers, root)
	w.book = newBook(w)
	w.configs.build()
	w.power = newPower(w)
	w.tasks.over = make(chan struct{})
	w.Cleanup(w.tasks.end)
	w.secrets.build()
	w.must(w.look.Conn().AddAuth("digest", []byte(w.secrets.keys.zk)))
	w.desk.build()
	w.fleet.build()
}

// heal ends all faults.
func (w *world) heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.power.broken = false
	w.ensemble.heal()
	w.fleet.heal()
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
	for _, n := range w.fleet.nodes {
		if n.off || !n.sup.Running() {
			w.fleet.boot(n)
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
	for _, s := range serviceNames() {
		if len(running[s]) != 1 {
			return fmt.Sprintf("one program of %s, there are %d", s, len(running[s]))
		}
	}
	return w.fleet.unready()
}
