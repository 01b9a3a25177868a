package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/config"
	"understudy/supervisor/control"
	"understudy/supervisor/control/ensemble"
	"understudy/supervisor/printable"
)

// lookedAt is what `check --zk` tells of the servers.
type lookedAt struct {
	Servers []ensemble.ServerStatus `json:"servers"`
	ensemble.Findings

	reached bool
	refused error // before anything was asked
}

// lookAt asks the servers of a config.
func lookAt(ctx context.Context, c *config.Config, here bool) *lookedAt {
	auth, err := credentials(c)
	if err != nil && here { // else the file is for another machine
		return &lookedAt{refused: err}
	}
	r := ensemble.Look(ctx, client(c, auth))
	l := &lookedAt{Servers: r.Servers, Findings: r.Judge(use(c)), reached: r.Reached()}
	if l.reached {
		l.nodes(ctx, client(c, auth), c.Services)
	}
	return l
}

// nodes looks at those that are connected, and at those that have, or had, a copy of a replicated service.
func (l *lookedAt) nodes(ctx context.Context, cfg election.Config, services map[string]config.Service) {
	ctx, enough := context.WithTimeout(ctx, ensemblePatience)
	defer enough()
	c, err := control.Open(ctx, cfg)
	if err != nil {
		return // the servers tell more of that
	}
	defer c.Close()
	if differ, err := c.Unlike(ctx); err == nil && differ != "" {
		l.Warnings = append(l.Warnings, differ)
	}
	now, err := c.Status(ctx) // of what else cannot be read nothing is warned
	if errors.Is(err, election.ErrNoAuth) {
		l.Faults = append(l.Faults, "what is below "+cfg.Root+
			" belongs to other credentials: set zookeeper.auth to those of the other nodes")
	}
	for _, v := range now.Services {
		if r := services[v.Service].Replicated; r != nil {
			if why := r.DoubtfulPositions(len(v.Known)); why != "" {
				l.Warnings = append(l.Warnings, v.Service+": "+why)
			}
		}
	}
}

// use is how services depend on the ensemble.
func use(c *config.Config) ensemble.Use {
	u := ensemble.Use{Lease: c.ZooKeeper.Lease}
	for _, s := range c.Services {
		u.Grace = max(u.Grace, s.GraceDelay)
	}
	if len(c.Services) == 0 { // the config is another machine's
		u.Grace = config.DefaultService().GraceDelay
	}
	return u
}

func (l *lookedAt) print(out io.Writer) {
	if l == nil {
		return
	}
	for _, s := range l.Servers {
		fmt.Fprintln(out, "zookeeper:", printable.Text(s.Line()))
	}
	for _, part := range []struct {
		name  string
		texts []string
	}{{"error", l.Faults}, {"warning", l.Warnings}, {"note", l.Notes}} {
		for _, text := range part.texts {
			fmt.Fprintf(out, "%s: %s\n", part.name, printable.Text(text))
		}
	}
}

// unreachable ends a command as if its time had run out.
type unreachable struct{ error }

func (unreachable) Is(target error) bool { return target == errTimeout }

// fault is why the servers cannot be used; nil: they can.
func (l *lookedAt) fault() error {
	switch {
	case l == nil:
		return nil
	case l.refused != nil:
		return l.refused
	case len(l.Faults) > 0:
		return usage("ZooKeeper cannot be used: %s", strings.Join(l.Faults, "; "))
	case !l.reached:
		return unreachable{errors.New("no ZooKeeper server can be reached: is ZooKeeper up, and are the servers' names right?")}
	}
	return nil
}

const ensemblePatience = 10 * time.Second

// tellEnsemble looks, in the background, whether the servers are of one ensemble, and logs it once if not. The caller calls stop.
func tellEnsemble(c *config.Config, auth *election.Auth, log hclog.Logger) (stop func()) {
	ctx, cancel := context.WithTimeout(context.Background(), ensemblePatience)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if danger := ensemble.Strangers(ctx, client(c, auth)); danger != "" && ctx.Err() == nil {
			log.Warn("dangerous setup of ZooKeeper", "warning", danger)
		}
	}()
	return func() { cancel(); <-done }
}
