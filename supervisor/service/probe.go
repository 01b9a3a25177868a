package service

import (
	"context"
	"time"

	"understudy/supervisor/child"
	"understudy/supervisor/config"
)

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
