package sim

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// workerMark in the environment makes the test binary a worker: a process of its own with one thread of Go code, in which
// the order of goroutines is nearly always the same.
const workerMark = "UNDERSTUDY_SIMULATE"

// task is what a worker is asked for.
type task struct {
	Seed   uint64
	Last   uint64 // seed to be asked for; 0: there is none
	Shrink int    // runs to spend on shrinking
	Tell   bool   // everything
}

// report is what it answers.
type report struct {
	Seed    uint64
	Broken  string
	Promise string
	Plan    string
	Weight  int // of the plan
	Shrunk  int // of what it was shrunk to
	Trace   string
	Sum     uint64
	Virtual time.Duration
	Calm    time.Duration
	Units   float64 // session timeouts
	Starts  int
	Doomed  int
	Resets  int
	Left    int
	Kept    int
	Dropped int
	Slowest float64 // session timeouts until a service ran again, at most
	Faults  map[Kind]int
	Planned map[Kind]int
	Cover   Coverage
	Took    time.Duration
}

// TestAWorkerAnswers is also what a worker is started with.
func TestAWorkerAnswers(t *testing.T) {
	if os.Getenv(workerMark) != "" {
		work(t)
		return
	}
	w, err := startWorker(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	r, err := w.ask(task{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if r.Seed != 1 || r.Virtual < planLength*minTimeout || r.Starts == 0 {
		t.Errorf("a worker answers %+v", r)
	}
	w.stop()
	if !w.cmd.ProcessState.Success() {
		t.Errorf("a worker ends with %v: %s", w.cmd.ProcessState, w.said.String())
	}
}

// work is what a worker does.
func work(t *testing.T) {
	debug.SetGCPercent(-1) // a collection at any moment would disturb the order of goroutines; run makes them where it does not
	debug.SetMemoryLimit(1 << 30)
	debug.SetTraceback("all")
	in := json.NewDecoder(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	for {
		var ask task
		if in.Decode(&ask) != nil {
			return
		}
		if err := out.Encode(carryOut(t, ask)); err != nil {
			return
		}
	}
}

func carryOut(t *testing.T, ask task) *report {
	began := time.Now()
	again := func(p *Plan) *Result { return inBubble(t, p) }
	plan := NewPlan(ask.Seed)
	var all strings.Builder
	if ask.Tell {
		all.WriteString(plan.String())
		plan.Tell = func(line string) { all.WriteString(line + "\n") }
	}
	r := again(plan)
	answer := &report{
		Seed: ask.Seed, Sum: r.Sum, Virtual: r.Virtual, Calm: r.Calm, Units: float64(r.Virtual) / float64(r.Plan.Timeout), Starts: r.Starts,
		Doomed: r.Doomed, Resets: r.Resets, Left: r.Leftovers, Kept: r.Kept, Dropped: r.Dropped, Faults: r.Faults, Planned: r.Plan.Planned(), Cover: r.Cover, Slowest: float64(r.Slowest) / float64(r.Plan.Timeout), Took: time.Since(began),
	}
	if r.Violation != nil {
		answer.Broken, answer.Promise = r.Violation.String(), r.Violation.Promise
		if ask.Shrink > 0 {
			r = Shrink(r, ask.Shrink, again)
		}
		answer.Weight, answer.Shrunk = plan.weight(), r.Plan.weight()
		answer.Plan, answer.Trace = r.Plan.String(), r.Trace
	}
	if ask.Tell {
		answer.Trace = all.String()
	}
	return answer
}

// inBubble runs a plan in virtual time.
func inBubble(t *testing.T, p *Plan) (r *Result) {
	done := make(chan struct{})
	go watchVirtualTime(p, done)
	defer close(done)
	synctest.Test(t, func(*testing.T) { r = run(p) })
	return r
}

const standsStill = "virtual time stands still"

// watchVirtualTime ends the process when virtual time stands still: somebody waits for a lock whose holder waits for time to
// pass. The time in which the process wanted a processor and had none is not counted: other programs take it, as long as they like.
func watchVirtualTime(p *Plan, done <-chan struct{}) {
	look := time.NewTicker(5 * time.Second)
	defer look.Stop()
	began := time.Now()
	var since time.Duration
	for before := int64(-1); ; {
		select {
		case <-done:
			return
		case <-look.C:
		}
		w := current.Load()
		if w == nil {
			continue
		}
		own := time.Since(began) - starved()
		if now := w.course.passed.Load(); now != before {
			before, since = now, own
		}
		if own-since > 30*time.Second {
			fmt.Fprintf(os.Stderr, "%v\n%s", p, w.trace.last(60))
			panic(standsStill)
		}
	}
}

// starved is how long this process's threads waited for a processor; of each thread the kernel tells how long it ran, and waited.
func starved() (waited time.Duration) {
	threads, err := filepath.Glob("/proc/self/task/*/schedstat")
	if err != nil || len(threads) == 0 {
		panic(fmt.Sprintf("the kernel does not tell how long this process waited: %v", err))
	}
	for _, path := range threads {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		var ran, wait int64
		if _, err := fmt.Sscan(string(text), &ran, &wait); err != nil {
			panic(fmt.Sprintf("%s: %v", path, err))
		}
		waited += time.Duration(wait)
	}
	return waited
}

// simulate has workers run one seed after the other, from first on, until more says no. What was begun then is reported too.
func simulate(exe string, first uint64, workers int, how task, more func(r *report) bool) error {
	var mu sync.Mutex
	next, going := first, true
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for n := range workers {
		wg.Go(func() {
			w, err := startWorker(exe)
			if err != nil {
				errs[n] = err
				return
			}
			defer w.stop()
			for {
				mu.Lock()
				seed := next
				next++
				ask := going && (how.Last == 0 || seed <= how.Last)
				mu.Unlock()
				if !ask {
					return
				}
				how := how
				how.Seed = seed
				r, err := w.ask(how)
				mu.Lock()
				if err != nil {
					errs[n] = fmt.Errorf("seed %d: %w", seed, err)
					going = false
				} else {
					going = more(r) && going
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

type worker struct {
	cmd   *exec.Cmd
	in    *json.Encoder
	out   *bufio.Reader
	close func() error
	said  strings.Builder
}

func startWorker(exe string) (*worker, error) {
	w := &worker{cmd: exec.Command(exe, "-test.run", "^TestAWorkerAnswers$", "-test.timeout", "0")}
	w.cmd.Env = append(os.Environ(), workerMark+"=1", "GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1,gcshrinkstackoff=1")
	w.cmd.Stderr = &w.said
	in, err := w.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.in, w.out, w.close = json.NewEncoder(in), bufio.NewReaderSize(out, 1<<20), in.Close
	return w, w.cmd.Start()
}

func (w *worker) ask(ask task) (*report, error) {
	if err := w.in.Encode(ask); err != nil {
		return nil, w.failed(ask, err, "")
	}
	line, err := w.out.ReadString('\n')
	var r report
	if err == nil {
		err = json.Unmarshal([]byte(line), &r)
	}
	if err != nil {
		return nil, w.failed(ask, err, line)
	}
	return &r, nil
}

// failed is everything that a worker said that did not answer.
func (w *worker) failed(ask task, err error, line string) error {
	_ = w.close()
	rest, _ := io.ReadAll(w.out)
	_ = w.cmd.Wait() // before that, some of what it said may be on its way
	said := line + string(rest) + w.said.String()
	_, reason, panicked := strings.Cut(said, "panic: ") // once more at the end, which is what is read of a long text
	if !panicked {
		reason = said
	}
	reason, _, _ = strings.Cut(reason, "\n")
	return fmt.Errorf("worker: %w\n%s\nseed %d: %v: %s", err, said, ask.Seed, w.cmd.ProcessState, reason)
}

func (w *worker) stop() {
	_ = w.close()
	_ = w.cmd.Wait()
}
