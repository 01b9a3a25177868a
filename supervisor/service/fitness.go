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
		f.news.stir()
	}
}

// precheck is the command that says whether this node is fit to be a candidate.
type precheck struct {
	unit  *unit.Unit
	due   chan struct{} // capacity 1: a request to run it
	found finding

	mu        sync.Mutex // guards the fields below
	conf      config.Precheck
	candidate bool // this node is one: only then the precheck is run
}

// configure puts a config in force. A changed command has said nothing yet.
func (p *precheck) configure(c config.Precheck) {
	p.mu.Lock()
	changed := !reflect.DeepEqual(p.conf, c)
	p.conf = c
	p.mu.Unlock()
	if changed {
		p.found.write(fitness{})
		wait.Poke(p.due)
	}
}

// stand says whether this node is a candidate.
func (p *precheck) stand(yes bool) {
	p.mu.Lock()
	p.candidate = yes
	p.mu.Unlock()
	if yes {
		wait.Poke(p.due)
	}
}

// keep keeps its verdict current for as long as this node is a candidate.
func (p *precheck) keep(ctx context.Context) {
	for ctx.Err() == nil {
		p.mu.Lock()
		conf, candidate := p.conf, p.candidate
		p.mu.Unlock()
		if len(conf.Exec) > 0 && candidate {
			now := fitness{known: true}
			if err := p.unit.Command(ctx, "precheck", child.Spec{Argv: conf.Exec, Env: p.unit.Facts(0)}, conf.Timeout); err != nil {
				now.why = err.Error()
			}
			if ctx.Err() != nil {
				return
			}
			p.found.write(now)
		}
		next := time.NewTimer(max(conf.Interval, time.Second))
		select {
		case <-next.C:
		case <-p.due:
		case <-ctx.Done():
		}
		next.Stop()
	}
}
