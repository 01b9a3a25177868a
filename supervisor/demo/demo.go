package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"time"
)

// Config is what to show, and where.
type Config struct {
	Nodes   int
	Command []string // empty: the built-in program
	Hold    bool     // stay up afterwards, for the user to play
	Exe     string   // this binary, which the supervisors are made of
	Call    string   // how a user calls it
	Out     io.Writer
	Width   func() int      // of the terminal that Out is; 0 when it is none
	Hurry   <-chan struct{} // closed when everything is to end at once
	Pause   time.Duration   // for the eye, before and after each fault; 0: as long as that takes
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

	gap, overlap time.Duration
}

// ErrOverlap says that two copies of the program ran at the same time.
var ErrOverlap = errors.New("two copies of the program ran at the same time")

// Run shows everything, and returns when all that it started has ended.
func Run(ctx context.Context, cfg Config) (Measurements, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	report := Measurements{Nodes: cfg.Nodes, Command: cfg.Command, Faults: []FaultResult{}, Measured: "by the program itself, which signs every millisecond that it runs"}
	if len(cfg.Command) == 0 {
		report.Command = []string{}
	} else {
		report.Measured = "by a small program that starts the command, and signs every millisecond until that has ended"
	}
	screen := &screen{out: cfg.Out, width: cfg.Width}
	err := perform(ctx, cfg, func(stage *stage) error {
		s := &show{stage: stage, screen: screen, exe: cfg.Exe, pause: cfg.Pause}
		var wg sync.WaitGroup
		drawing, stop := context.WithCancel(context.WithoutCancel(ctx))
		p := &picture{ink: newInk(), stage: stage, screen: screen, caption: s.title, pids: cfg.Hold}
		s.opening(cfg)
		wg.Go(func() { p.show(drawing) })
		err := s.play(ctx, cfg, &report)
		s.titled("Ending everything that was started.")
		if ctx.Err() != nil {
			s.titled("Ending everything that was started; Ctrl-C again to do it at once.")
		}
		stop()
		wg.Wait()
		return err
	})
	screen.draw(nil)
	if err == nil && report.OverlapMs > 0 {
		err = fmt.Errorf("%w, for %.2f ms", ErrOverlap, report.OverlapMs)
	}
	return report, err
}

func (s *show) opening(cfg Config) {
	program := "a small program that signs every millisecond that it runs"
	if len(cfg.Command) > 0 {
		program = "`" + strings.Join(cfg.Command, " ") + "`"
	}
	s.say("Understudy demo: %d nodes on this machine, and an embedded ZooKeeper.", cfg.Nodes)
	s.say("%s", clip("Each node may run "+program+";", 80))
	s.say("exactly one does. Now the active one is broken, in %d ways, one after another.\n", len(faults))
}

// play shows all faults, then leaves the stage to the user if that is wanted.
func (s *show) play(ctx context.Context, cfg Config, report *Measurements) error {
	defer func() {
		lives := s.lives()
		report.Runs = len(lives)
		for _, h := range handovers(lives) {
			report.OverlapMs = max(report.OverlapMs, ms(h.overlap))
		}
	}()
	s.titled("Starting.")
	err := s.until(ctx, takeover, "no node runs the program", func() bool { _, _, ok := s.active(); return ok })
	if err != nil {
		return err
	}
	for i, f := range faults {
		r, err := s.runFault(ctx, f)
		if err != nil {
			return err
		}
		report.Faults = append(report.Faults, r)
		s.say("%d/%d  %-23s %s -> %s  gap %-8s overlap %s", i+1, len(faults), r.What, r.From, r.To, tell(r.gap), tell(r.overlap))
	}
	if cfg.Hold {
		return s.hold(ctx, cfg)
	}
	return nil
}

// tell tells a short time: milliseconds, or seconds.
func tell(d time.Duration) string {
	switch {
	case d == 0:
		return "0"
	case d < time.Second:
		return fmt.Sprintf("%.1f ms", ms(d))
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}
