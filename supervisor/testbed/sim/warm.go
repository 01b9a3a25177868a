package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"understudy/supervisor/child"
	"understudy/supervisor/config"
)

// Warm services: as replicated ones, without data. Where none are replicated, one in so many plans has them.
const (
	warmIn   = 5
	warmFrom = 0
)

// warms makes the services of a plan warm. It has a stream of its own: the others are what they were.
func (p *Plan) warms() {
	r := rand.New(rand.NewPCG(p.Seed, 65))
	if r.IntN(warmIn) != warmFrom || p.Replicated {
		return
	}
	p.Warm = &warm{asked: r.IntN(2) == 0, demotes: r.IntN(2) == 0}
	if r.IntN(2) == 0 {
		p.Warm.rises = drawn(r, p.Timeout/4)
	}
}

// warm is what warm services are like.
type warm struct {
	asked, demotes bool
	rises          time.Duration // until its program is ready
}

func (w *warm) String() string {
	return fmt.Sprintf(", warm (says what it is: %v, demoted: %v, ready after %v)", w.asked, w.demotes, w.rises)
}

// copied reports whether the services run everywhere.
func (p *Plan) copied() bool { return p.Replicated || p.Warm != nil }

func (p *Plan) warmWords() string {
	if p.Warm == nil {
		return ""
	}
	return p.Warm.String()
}

// warm makes a service's config so. Its program is ready after a while.
func (p *Plan) warm(conf *config.Service) {
	if p.Warm == nil {
		return
	}
	w := &config.Warm{Promote: config.Order{Exec: []string{promoteCommand}}, Timeout: p.Timeout / 4}
	if p.Warm.asked {
		w.Role = []string{roleCommand}
	}
	if p.Warm.demotes {
		w.Demote = config.Order{Exec: []string{demoteCommand}}
	}
	conf.Warm, conf.Replicated = w, &config.Replicated{Role: w.Role, Timeout: w.Timeout, Interval: 2 * p.Timeout}
	for i := range conf.Processes {
		if one := &conf.Processes[i]; one.Name == mainProgram && p.Warm.rises > 0 {
			one.Ready = config.Ready{After: p.Warm.rises}
		}
	}
}

// standsBy is told of each program before it starts: one that stands by is no child of the service yet. World.mu is held.
func (t *tree) standsBy(spec child.Spec) {
	if t.host.w.plan.Warm == nil || spec.Argv[0] != mainProgram {
		return
	}
	if other := t.copy(); other != nil {
		t.host.w.check.broken("copies", "a program of %s is started on %s beside %v", t.service, t.node, other)
	}
	if variable(spec, "UNDERSTUDY_ROLE") != "follower" {
		t.host.w.check.broken("copies", "a program of %s is started on %s as no follower", t.service, t.node)
	}
	t.aside = "copy"
}

// checksFollower reports whether a process is a health check that was begun while its program stood by. One whose start hangs is left to
// itself, and may begin once the program is promoted: it is no child. The token is the follower's.
func (p *proc) checksFollower() bool {
	return p.tree.host.w.plan.Warm != nil && p.program == healthCheck && p.token == 0
}

// truthful reports whether a demote that ends with success has to have demoted the copy: nobody asks that.
func (p *Plan) truthful() bool { return p.Warm != nil && !p.Warm.asked }
