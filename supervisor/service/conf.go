package service

import (
	"cmp"
	"time"

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
	Hold  time.Duration  // how long after that the lock is kept
	Wait  *Patience      // for the lock; nil: without end
}

// copyAddress is how others reach this node's copy.
func (c Conf) copyAddress(host string) string { return cmp.Or(c.Replicated.Address, host) }

func (c Conf) order() election.Mode { return election.Mode(c.Election) }

func (c Conf) failsafe() bool { return c.OnLoss == config.OnLossFailsafe }
