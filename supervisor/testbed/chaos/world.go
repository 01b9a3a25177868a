package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/tick"
	"understudy/supervisor/testbed/must"
	"understudy/supervisor/testbed/zktest"
)

// The timeouts of everything.
const (
	root     = "/chaos"
	session  = 4 * time.Second
	tickTime = 500 * time.Millisecond
	grace    = time.Second
	rejoin   = 5 * time.Second // after a node has failed, and after a fencing that was refused
	lease    = session*7/12 + session/20
)

// progress is how long it may take until every service runs and every node stands by, after all faults are undone: a leader is
// elected, a node's own previous session ends, the previous session of the lock ends, and then comes the wait for its lease or
// the rest after a refused fencing. It is doubled, and half a minute added, for a machine that has other work.
const progress = 2*(2*(session+tickTime)+max(grace, lease)+rejoin) + 30*time.Second

// world is all that faults befall.
type world struct {
	*kit.Program
	*report
	logs     string
	services []*service
	stage    *kit.Stage
	look     *kit.Cluster
	stranger *kit.Cluster // without credentials
	desk     *node        // where operators sit; no supervisor runs there
	stood    func() time.Duration

	ctx    context.Context // ends with the run
	cancel context.CancelFunc
	tasks  sync.WaitGroup // what goes on beside the faults

	mu      sync.Mutex // guards the fields below; who strikes or undoes a fault holds it
	nodes   []*node
	power   power
	keys    keys
	granted int // which of grants the servers grant from their next starts on
	pauses  []pause
	bursts  [][]*stroke // all that struck
}

func newWorld(program *kit.Program, dir string) (*world, error) {
	logs, file, err := folder(dir)
	w := &world{Program: program, logs: logs, report: newReport(file)}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.services = []*service{
		{name: "plain", lines: "election: race\n    ready: {notify: true, timeout: 1m}", words: []string{"notify=1"}},
		{name: "queued", lines: "election: queue\n    on_zookeeper_loss: failsafe", words: []string{"children=1"}},
		{name: fenced, lines: "election: race"},
		{name: "forking", lines: "election: queue", words: []string{"daemons=1", "term=fork"}},
		{name: "stubborn", lines: "election: race\n    stop_timeout: 1500ms", words: []string{"term=ignore"}},
	}
	return w, err
}

// TempDir is where the supervisors' logs go: they are kept with the report.
func (w *world) TempDir() string { return w.logs }

// build makes the network, the servers and the nodes, which have no power yet.
func (w *world) build() {
	kit.UnderstudyBinary(w)
	w.stage = kit.NewStage(w.Program, 3, zktest.Config{TickTime: tickTime})
	w.look = kit.Look(w, w.stage.Servers, root)
	w.stranger = kit.Look(w, w.stage.Servers, root)
	w.stood = kit.Stood(w.Program)
	for _, s := range w.services {
		s.Accounts = kit.NewAccounts(w.Program, w.stage.Lab)
	}
	w.power.serve(w)
	w.keys = keys{secret: newSecret(), zk: "owner:" + newSecret()}
	w.must(w.look.Conn().AddAuth("digest", []byte(w.keys.zk)))
	w.desk = w.newNode("desk")
	w.must(replace(w.desk.file, w.cluster(w.desk)+"services: {}\n"))
	for _, name := range []string{"a", "b", "c"} {
		n := w.newNode(name)
		w.must(w.rewrite(n))
		w.nodes = append(w.nodes, n)
	}
}

func (w *world) must(err error) {
	must.OK(w, err)
}

// beside runs what takes long beside the faults, until stop is called or the run ends.
func (w *world) beside(all ...func(ctx context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(w.ctx)
	for _, f := range all {
		w.tasks.Go(func() { f(ctx) })
	}
	return cancel
}

// sleep reports whether the context still holds after a while.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// torment does one burst after another, until the time is over or there is a finding. The faults of each are undone, and all has
// to be well before the next.
func (w *world) torment(ctx context.Context, d *dealer) {
	for w.found() == 0 {
		pause, strokes := d.burst()
		calm := !slices.ContainsFunc(strokes, func(s *stroke) bool { return !s.harmless })
		if calm {
			w.quiet()
			w.stood() // is asked again afterwards
		}
		before := w.running()
		if !sleep(ctx, pause) {
			return
		}
		w.strike(strokes)
		w.recover()
		if calm {
			w.untouched(before)
		}
	}
}

// strike lets the faults of one burst begin and end.
func (w *world) strike(strokes []*stroke) {
	type event struct {
		at time.Time
		do func()
	}
	began := time.Now()
	w.mu.Lock()
	w.bursts = append(w.bursts, nil)
	w.mu.Unlock()
	var events []event
	for _, s := range strokes {
		at := began.Add(s.after)
		events = append(events, event{at, func() {
			s.at = tick.Now()
			undo, err := s.do(w, s)
			if err != nil {
				return // it is dealt again with the next deck
			}
			w.struck(s)
			if undo != nil {
				events = append(events, event{at.Add(s.last), undo})
			}
		}})
	}
	for len(events) > 0 {
		slices.SortStableFunc(events, func(a, b event) int { return a.at.Compare(b.at) })
		next := events[0]
		events = events[1:]
		time.Sleep(time.Until(next.at)) // the plan's own pace
		w.mu.Lock()
		next.do()
		w.mu.Unlock()
	}
}

// recover undoes all faults, waits until all is well, and judges everything so far.
func (w *world) recover() {
	healed := time.Now()
	w.heal()
	w.serve()
	missing := w.wait(w.wanting)
	if missing != "" && w.sew() {
		missing = w.wait(w.wanting)
	}
	if missing != "" {
		w.find("stuck: %v after all faults were undone there is still not %s", progress, missing)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.judge()
	w.say("%s    well again after %.1f s", w.clock(tick.Now()), time.Since(healed).Seconds())
}

func (w *world) heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.power.broken = false
	w.startServers()
	for _, h := range w.stage.Hosts {
		h.Heal(w)
	}
	for _, n := range w.nodes {
		n.hit = 0
		w.mend(n)
		w.rejoin(n)
		w.boot(n)
	}
}

// wait waits until nothing is wanting. Otherwise it returns what still is after the limit.
func (w *world) wait(wanting func() string) (missing string) {
	kit.Reached(progress, func() bool {
		time.Sleep(moment / 2) // each look asks the servers for much
		missing = wanting()
		return missing == "" || w.found() > 0
	})
	return missing
}

// wanting gives what is missing until everything is well. It starts again what is down.
func (w *world) wanting() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.nodes {
		if n.off || !n.sup.Running() {
			w.boot(n)
			return "a supervisor on " + n.name
		}
		if len(n.sup.Guardians()) != 2 {
			return "two guardians on " + n.name
		}
	}
	for _, s := range w.services {
		if n := len(s.running()); n != 1 {
			return fmt.Sprintf("one program of %s (there are %d)", s.name, n)
		}
		for _, n := range w.nodes {
			if m, _ := w.look.Member(s.name, n.name); m.Role != "standby" && m.Role != "active" {
				return fmt.Sprintf("a member of %s on %s (its role is %q)", s.name, n.name, m.Role)
			}
		}
	}
	return ""
}

// end stops everything in the orderly way.
func (w *world) end() {
	w.cancel()
	w.mu.Lock()
	for _, n := range w.nodes {
		n.down = true
		n.sup.Signal(syscall.SIGTERM)
	}
	w.mu.Unlock()
	ended := make(chan struct{})
	go func() { w.tasks.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(progress):
		w.find("stuck: %v after SIGTERM a supervisor still runs", progress)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.judge()
	w.steps()
	w.leaked()
	w.keepServerLogs()
}
