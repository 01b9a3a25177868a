package service

import (
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
