package supervisor

import (
	"context"
	"time"

	"understudy/supervisor/child"
)

// check keeps the precheck's verdict current for as long as this node stands for election.
func (v *service) check(ctx context.Context) {
	for ctx.Err() == nil {
		v.news.mu.Lock()
		conf, standing := v.precheck, v.news.standing
		v.news.mu.Unlock()
		if len(conf.Exec) > 0 && standing {
			unfit := ""
			if err := v.unit.Command(ctx, "precheck", child.Spec{Argv: conf.Exec, Env: v.unit.Facts(0)}, conf.Timeout); err != nil {
				unfit = err.Error()
			}
			if ctx.Err() != nil {
				return
			}
			v.news.mu.Lock()
			same := v.news.tested && v.news.unfit == unfit
			v.news.mu.Unlock()
			if !same {
				v.news.tell(func() { v.news.tested, v.news.unfit = true, unfit })
			}
		}
		next := time.NewTimer(max(conf.Interval, time.Second))
		select {
		case <-next.C:
		case <-v.news.stood:
		case <-ctx.Done():
		}
		next.Stop()
	}
}
