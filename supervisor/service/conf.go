package service

import (
	"sync"
	"sync/atomic"

	"understudy/election"
	"understudy/fencing"
	"understudy/supervisor/config"
)

// Conf is the config of one service.
type Conf struct {
	config.Service
	Name  string
	Fence []fencing.Step // its Fencing.Methods, with this node's keys
	Once  bool           // the command's own end ends the service here
}

func (c Conf) order() election.Mode { return election.Mode(c.Election) }

func (c Conf) failsafe() bool { return c.OnLoss == config.OnLossFailsafe }

// given is the newest config of a service, in force or about to be. All its methods are safe.
type given struct {
	news    news
	removed atomic.Bool // the service is not in the config any more

	mu    sync.Mutex // guards the fields below
	conf  Conf
	fresh bool // it is not in force yet
}

func (g *given) get() Conf {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.conf
}

func (g *given) give(c Conf) {
	g.mu.Lock()
	g.conf, g.fresh = c, true
	g.mu.Unlock()
	g.news.stir()
}

// take returns a config that is not in force yet.
func (g *given) take() (c Conf, fresh bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	fresh, g.fresh = g.fresh, false
	return g.conf, fresh
}
