//go:build simulation

package sim

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
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
	Shrink int  // runs to spend on shrinking
	Tell   bool // everything
}

// report is what it answers.
type report struct {
	Seed    uint64
	Broken  string
	Promise string
	Plan    string
	Trace   string
	Sum     uint64
	Virtual time.Duration
	Units   float64 // session timeouts
	Starts  int
	Doomed  int
	Slowest float64 // session timeouts until a service ran again, at most
	Faults  map[Kind]int
	Cover   Coverage
	Took    time.Duration
}

// TestWorker is the worker.
func TestWorker(t *testing.T) {
	if os.Getenv(workerMark) == "" {
		t.Skip("it is run by the other tests")
	}
	debug.SetGCPercent(-1) // a collection at any moment would disturb the order of goroutines; run makes one in each episode
	debug.SetMemoryLimit(1 << 30)
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
	plan := NewPlan(ask.Seed, 0)
	var all strings.Builder
	if ask.Tell {
		all.WriteString(plan.String())
		plan.Tell = func(line string) { all.WriteString(line + "\n") }
	}
	r := again(plan)
	answer := &report{
		Seed: ask.Seed, Sum: r.Sum, Virtual: r.Virtual, Units: float64(r.Virtual) / float64(r.Plan.Timeout), Starts: r.Starts,
		Doomed: r.Doomed, Faults: r.Faults, Cover: r.Cover, Slowest: float64(r.Slowest) / float64(r.Plan.Timeout), Took: time.Since(began),
	}
	if r.Violation != nil {
		answer.Broken, answer.Promise = r.Violation.String(), r.Violation.Promise
		if ask.Shrink > 0 {
			r = Shrink(r, ask.Shrink, again)
		}
		answer.Plan, answer.Trace = r.Plan.String(), r.Trace
	}
	if ask.Tell {
		answer.Trace = all.String()
	}
	return answer
}

// inBubble runs a plan in virtual time.
func inBubble(t *testing.T, p *Plan) (r *Result) {
	stuck := time.AfterFunc(time.Minute, func() {
		fmt.Fprintf(os.Stderr, "%v\n%s", p, current.Load().trace.last(60))
		panic("virtual time stands still")
	})
	defer stuck.Stop()
	synctest.Test(t, func(*testing.T) { r = run(p) })
	return r
}

// simulate has workers run one seed after the other, from first on, until done says no.
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
				ask := going
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
				} else if going {
					going = more(r)
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
	w := &worker{cmd: exec.Command(exe, "-test.run", "^TestWorker$", "-test.timeout", "0")}
	w.cmd.Env = append(os.Environ(), workerMark+"=1", "GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1")
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
		return nil, fmt.Errorf("worker: %w\n%s", err, w.said.String())
	}
	line, err := w.out.ReadBytes('\n')
	if err != nil {
		_ = w.cmd.Wait()
		return nil, fmt.Errorf("worker: %w\n%s", err, w.said.String())
	}
	var r report
	if err := json.Unmarshal(line, &r); err != nil {
		rest, _ := w.out.Peek(w.out.Buffered())
		return nil, fmt.Errorf("worker: %w: %s%s", err, line, rest)
	}
	return &r, nil
}

func (w *worker) stop() {
	_ = w.close()
	_ = w.cmd.Wait()
}

// summary adds reports up.
type summary struct {
	seeds, starts, doomed int
	virtual               time.Duration
	units, slowest        float64
	faults                map[Kind]int
	cover                 Coverage
	broken                int
}

func newSummary() *summary { return &summary{faults: map[Kind]int{}, cover: Coverage{}} }

func (s *summary) add(r *report) {
	s.seeds++
	s.virtual += r.Virtual
	s.units += r.Units
	s.starts += r.Starts
	s.doomed += r.Doomed
	s.slowest = max(s.slowest, r.Slowest)
	s.cover.add(r.Cover)
	for k, n := range r.Faults {
		s.faults[k] += n
	}
	if r.Broken != "" {
		s.broken++
	}
}

func (s *summary) String(took time.Duration) string {
	var b strings.Builder
	total := 0
	for _, n := range s.faults {
		total += n
	}
	fmt.Fprintf(&b, "%d seeds, %.0f virtual hours (%.0f session timeouts) in %v: %.0f hours a minute\n", s.seeds, s.virtual.Hours(), s.units,
		took.Round(time.Second), s.virtual.Hours()/took.Minutes())
	fmt.Fprintf(&b, "%d violations; %d faults; %d starts of a child, %d of them beside one that was killed but held by its kernel; "+
		"at most %.1f session timeouts from the end of all faults to a running child\n", s.broken, total, s.starts, s.doomed, s.slowest)
	for _, k := range Kinds() {
		fmt.Fprintf(&b, "  %-34s %8d\n", k, s.faults[k])
	}
	b.WriteString("transitions of a role:\n")
	b.WriteString(s.cover.String())
	return b.String()
}
