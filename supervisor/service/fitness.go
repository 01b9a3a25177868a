package service

import (
	"context"
	"reflect"
	"sync"
	"time"

	"understudy/supervisor/child"
	"understudy/supervisor/config"
	"understudy/supervisor/unit"
	"understudy/supervisor/wait"
)

// fitness is whether this node can do something.
type fitness struct {
	known bool
	why   string // why not; "": it can
}

// finding is a fitness that one goroutine determines and the service reads.
type finding struct {
	news news

	mu  sync.Mutex // guards the fields below
	fit fitness
}

func (f *finding) read() fitness {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fit
}

// write notes the fitness, and wakes the service if it has changed.
func (f *finding) write(now fitness) {
	f.mu.Lock()
	was := f.fit
	f.fit = now
	f.mu.Unlock()
	if now != was {
		f.news.wake()
	}
}

// precheck finds out whether this node is fit to be a candidate: by the service's own command, and by what the machine lacks.
type precheck struct {
	unit  *unit.Unit
	lacks func(config.Service) error // nil: that is not looked at
	due   chan struct{}              // capacity 1: a request to look
	found finding                    // of the command
	lack  finding
	reach wait.Reach

	probeDue chan struct{} // as due
	probed   finding       // by the service's agents

	mu        sync.Mutex // guards the fields below
	conf      config.Service
	candidate bool // this node is one: only then it is looked at
}

// configure puts a config in force. A changed command has said nothing yet.
func (p *precheck) configure(c config.Service) {
	p.mu.Lock()
	was := p.conf
	p.conf = c
	p.mu.Unlock()
	if !reflect.DeepEqual(was.Precheck, c.Precheck) {
		p.found.write(fitness{})
	}
	if !reflect.DeepEqual(probesOf(was), probesOf(c)) {
		p.probed.write(fitness{})
	}
	wait.Poke(p.due)
	wait.Poke(p.probeDue)
}

// stand says whether this node is a candidate.
func (p *precheck) stand(yes bool) {
	p.mu.Lock()
	p.candidate = yes
	p.mu.Unlock()
	if yes {
		wait.Poke(p.due)
		wait.Poke(p.probeDue)
	}
}

// How often a candidate looks for what this machine lacks; for what it lacked; for devices, which is cheap; and, without cause, whether a
// disk works, or one that failed works again, which is written to no more often.
const (
	checkLacksEvery   = time.Minute
	checkMissingEvery = 10 * time.Second
	checkDevicesEvery = 500 * time.Millisecond
	checkDiskEvery    = 5 * time.Second
)

// checkOften keeps its verdict current for as long as this node is a candidate.
func (p *precheck) checkOften(ctx context.Context) {
	var (
		lacking             string    // as it is known
		disk                error     // why nothing could be noted
		looked, tried, told time.Time // since when these are known, and what the command says
	)
	for asked := true; ctx.Err() == nil; { // asked: there is cause to look
		p.mu.Lock()
		conf, candidate := p.conf, p.candidate
		p.mu.Unlock()
		every := checkLacksEvery
		if len(conf.Precheck.Exec) > 0 {
			every = max(conf.Precheck.Interval, time.Second)
		}
		pause := every
		if candidate && p.lacks != nil {
			if asked || lacking != "" && time.Since(looked) >= checkMissingEvery || time.Since(looked) >= every {
				why, err := wait.Reached(ctx, &p.reach, func() (error, error) { return p.lacks(conf), nil }, nil)
				switch {
				case err != nil: // no answer is no reason to stand back
				case why != nil:
					lacking = why.Error()
				default:
					lacking = ""
				}
				looked = time.Now()
			}
			if since := time.Since(tried); since >= checkLacksEvery || since >= checkDiskEvery && (asked || disk != nil) {
				_, disk = wait.Call(ctx, func() (struct{}, error) { return struct{}{}, p.unit.CannotNote(conf) }, nil)
				tried = time.Now()
			}
			now := fitness{known: true, why: lacking}
			if lacking != "" { // it may be there again, and no other node may have it
				pause = min(pause, checkMissingEvery)
			}
			if disk != nil && lacking == "" { // nothing could be started
				now.why = "cannot note how to undo it: " + disk.Error()
				pause = min(pause, checkDiskEvery)
			}
			if conf.HasAddress() {
				pause = checkDevicesEvery
				if why := conf.LacksDevice(); why != nil {
					now.why = why.Error()
				}
			}
			if ctx.Err() != nil {
				return
			}
			p.lack.write(now)
		}
		if len(conf.Precheck.Exec) > 0 && candidate {
			if asked || time.Since(told) >= every {
				told = time.Now()
				now := fitness{known: true}
				spec := child.Spec{Argv: conf.Precheck.Exec, Env: p.unit.Facts(0)}
				if err := p.unit.Command(ctx, "precheck", spec, conf.Precheck.Timeout); err != nil {
					now.why = err.Error()
				}
				if ctx.Err() != nil {
					return
				}
				p.found.write(now)
			}
			pause = min(pause, max(0, every-time.Since(told)))
		}
		var next <-chan time.Time // of one that is no candidate, nothing is asked
		if candidate {
			next = time.After(pause)
		}
		select {
		case <-next:
			asked = false
		case <-p.due:
			asked = true
		case <-ctx.Done():
		}
	}
}

// probesOf are the programs whose agents say whether this node is fit.
func probesOf(c config.Service) (all []config.Process) {
	for _, p := range c.Processes {
		if len(p.Probe) > 0 {
			all = append(all, p)
		}
	}
	return all
}

// probeOften asks the service's agents whether this node is fit, for as long as it is a candidate: now and then, since what they need may
// be installed, or be gone.
func (p *precheck) probeOften(ctx context.Context) {
	for ctx.Err() == nil {
		p.mu.Lock()
		probes, candidate := probesOf(p.conf), p.candidate
		p.mu.Unlock()
		var next <-chan time.Time
		if candidate && len(probes) > 0 {
			now := fitness{known: true}
			for _, one := range probes {
				spec := child.Spec{Argv: one.Probe, Env: p.unit.Facts(0)}
				if now.why = p.unit.Unfit(ctx, "probe of "+one.Name, spec, one.Ready.Timeout); now.why != "" {
					break
				}
			}
			if ctx.Err() != nil {
				return
			}
			p.probed.write(now)
			next = time.After(checkLacksEvery)
		}
		select {
		case <-next:
		case <-p.probeDue:
		case <-ctx.Done():
		}
	}
}
