// Package demo is a whole hot-standby set on one machine: an embedded ZooKeeper, real supervisors as processes of their
// own, and a program that they wrap. It breaks the active one in every way, and measures gaps and overlaps.
//
// What it promises: the program itself measures them, by the clock of this machine (for a command a small program that starts it, and
// ends with it, which Run says); and when Run returns, no process that it started is left.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"syscall"
	"time"

	"understudy/supervisor/wait"
)

// Config is what to show, and where.
type Config struct {
	Nodes   int
	Command []string // empty: the built-in program
	Hold    bool     // stay up afterwards, for the user to play
	Exe     string   // this binary, which the supervisors are made of
	Call    string   // how a user calls it
	Out     io.Writer
	Hurry   <-chan struct{} // closed when everything is to end at once
	Pause   time.Duration   // in which all has to be well before and after each fault
}

// Measurements is what was measured.
type Measurements struct {
	Nodes     int           `json:"nodes"`
	Command   []string      `json:"command"`
	Measured  string        `json:"measured"`
	Faults    []FaultResult `json:"faults"`
	OverlapMs float64       `json:"overlap_ms"` // at any time
	Runs      int           `json:"runs"`       // of the program
}

// FaultResult is what one fault came to.
type FaultResult struct {
	Fault     string  `json:"fault"`
	What      string  `json:"-"`
	From      string  `json:"from"`
	To        string  `json:"to"`
	GapMs     float64 `json:"gap_ms"`     // nothing ran
	OverlapMs float64 `json:"overlap_ms"` // two ran
}

// ErrOverlap says that two copies of the program ran at the same time.
var ErrOverlap = errors.New("two copies of the program ran at the same time")

// Run shows everything, and returns when all that it started has ended.
func Run(ctx context.Context, cfg Config) (Measurements, error) {
	runtime.LockOSThread() // supervisors end with the thread that started them
	defer runtime.UnlockOSThread()
	report := Measurements{Nodes: cfg.Nodes, Command: append([]string{}, cfg.Command...), Faults: []FaultResult{}}
	report.Measured = "by the program itself, which signs every millisecond that it runs"
	if len(cfg.Command) > 0 {
		report.Measured = "by a small program that starts the command, and signs every millisecond until that has ended"
	}
	err := perform(ctx, cfg, func(s *stage) error {
		s.say("Understudy demo: %d nodes on this machine, and an embedded ZooKeeper. Exactly one node runs the program.\n"+
			"Now that one is broken, in %d ways, one after another.\n", cfg.Nodes, len(faults))
		err := s.play(ctx, &report)
		if ctx.Err() != nil {
			s.say("Ending everything that was started; Ctrl-C again to do it at once.")
		}
		return err
	})
	if err == nil && report.OverlapMs > 0 {
		err = fmt.Errorf("%w, for %.2f ms", ErrOverlap, report.OverlapMs)
	}
	return report, err
}

// play shows all faults, then leaves the stage to the user if that is wanted.
func (s *stage) play(ctx context.Context, report *Measurements) error {
	defer func() {
		lives := s.lives()
		report.Runs = len(lives)
		for _, h := range handovers(lives) {
			report.OverlapMs = max(report.OverlapMs, ms(h.overlap))
		}
	}()
	for i, f := range faults {
		r, err := s.runFault(ctx, f)
		if err != nil {
			return err
		}
		report.Faults = append(report.Faults, r)
		s.say("%d/%d  %-23s %s -> %s  gap %.1f ms  overlap %.1f ms\n", i+1, len(faults), r.What, r.From, r.To, r.GapMs, r.OverlapMs)
	}
	if s.cfg.Hold {
		return s.hold(ctx)
	}
	return nil
}

// stayAway is how long a supervisor that the user has ended stays away.
const stayAway = 3 * time.Second

// hold leaves everything to the user until Ctrl-C, and starts again what the user ends.
func (s *stage) hold(ctx context.Context) error {
	victim, _, err := s.calm(ctx)
	if err != nil {
		return err
	}
	s.say("Now it is yours. The page of each node, which shows the takeovers:")
	for _, n := range s.nodes {
		s.say("  %s: http://%s/", n.name, n.page)
	}
	s.say(`In another terminal:
  %[1]s status --zk %[2]s
  kill %[3]d             # stop %[4]s, the active one
  kill -9 %[3]d          # kill its supervisor
  kill -STOP %[3]d; sleep 5; kill -CONT %[3]d      # freeze it for a while
  tail -f %[5]s/node-*.log
A supervisor that ends is started again after %[6]v. Ctrl-C here ends everything.
`, s.cfg.Call, s.zk, victim.process.Pid, victim.name, s.dir, stayAway)
	for wait.For(ctx, lookEvery) {
		for _, n := range s.nodes {
			if !wait.Closed(n.ended) || !wait.For(ctx, stayAway) {
				continue
			}
			if err := s.start(n); err != nil {
				return err
			}
			s.say("%s  %s is started again, as pid %d", time.Now().Format("15:04:05"), n.name, n.process.Pid)
		}
	}
	return nil
}

// fault is a way to break the active node.
type fault struct {
	name, short string
	what        string         // format: the node's name
	sent        syscall.Signal // to its supervisor; 0: it is cut off from ZooKeeper
	ends        bool           // the supervisor, by that
}

var faults = []fault{
	{"stop", "stop (SIGTERM)", "%s is asked to stop: the program ends, the lock is given back", syscall.SIGTERM, true},
	{"kill", "kill -9", "%s's supervisor is killed: its guardians end the program", syscall.SIGKILL, true},
	{"freeze", "freeze (SIGSTOP)", "%s's supervisor is frozen: its guardians end the program in time", syscall.SIGSTOP, false},
	{"cut", "cut off from ZooKeeper", "%s is cut off from ZooKeeper: it ends the program before its turn is over", 0, false},
}

// comeback is more than any fault may cost.
const comeback = 30 * time.Second

// errInterrupted is the user's Ctrl-C.
var errInterrupted = errors.New("interrupted")

// until waits for a condition.
func (s *stage) until(ctx context.Context, what string, holds func() bool) error {
	for began := time.Now(); !holds(); {
		if !wait.For(ctx, lookEvery) {
			return errInterrupted
		}
		if time.Since(began) > comeback {
			s.failed = true
			return fmt.Errorf("waited %v: %s; the logs are in %s", comeback, what, s.dir)
		}
	}
	return nil
}

// runFault breaks the active node, waits for another one to take over and for the broken one to come back, and measures.
func (s *stage) runFault(ctx context.Context, f fault) (FaultResult, error) {
	r := FaultResult{Fault: f.name, What: f.short}
	victim, previous, err := s.calm(ctx)
	if err != nil {
		return r, err
	}
	s.say(f.what, victim.name)
	if f.sent == 0 {
		victim.gate.set(true)
	} else if err := victim.process.Signal(f.sent); err != nil {
		return r, fmt.Errorf("send %v to %s: %w", f.sent, victim.name, err)
	}
	err = s.until(ctx, "no other node runs the program", func() bool {
		l, _ := newest(s.lives())
		return l.first > previous.first && l.node != victim.name
	})
	switch {
	case err != nil:
		return r, err
	case !wait.For(ctx, s.cfg.Pause):
		return r, errInterrupted
	}
	victim.gate.set(false)
	_ = victim.process.Signal(syscall.SIGCONT)
	if f.ends {
		<-victim.ended
		if err := s.start(victim); err != nil {
			return r, err
		}
	}
	if _, _, err := s.calm(ctx); err != nil {
		return r, err
	}
	for _, h := range handovers(s.lives()) {
		if h.to.first > previous.first {
			r.To, r.GapMs, r.OverlapMs = h.to.node, r.GapMs+ms(h.gap), max(r.OverlapMs, ms(h.overlap))
		}
	}
	r.From = previous.node
	return r, nil
}

// calm returns with the active node, when all has been well for a while.
func (s *stage) calm(ctx context.Context) (n *node, l life, err error) {
	since := time.Now()
	err = s.until(ctx, "not all nodes are in place", func() (ok bool) {
		if n, l, ok = s.settled(ctx); !ok {
			since = time.Now()
		}
		return ok && time.Since(since) >= s.cfg.Pause
	})
	return n, l, err
}

func ms(d time.Duration) float64 {
	return float64(d.Round(10*time.Microsecond)) / float64(time.Millisecond)
}
