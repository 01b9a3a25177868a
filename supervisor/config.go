package supervisor

import (
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/fencing"
)

// Config is all that one supervisor runs.
type Config struct {
	Node     string
	Host     string
	Version  string
	Servers  []string
	Root     string
	Timeout  time.Duration // of the ZooKeeper session
	Auth     *election.Auth
	Services []Service
	Logger   hclog.Logger
	Dial     election.DialFunc // nil: TCP
	Machine  Machine           // nil: this one
	Hurry    <-chan struct{}   // closed when stopping is to be quick: children are killed, not asked
}

// Service is one program that runs on one node at a time.
type Service struct {
	Name        string
	Command     []string
	Dir         string
	Env         []string
	Order       election.Order
	Contain     string
	StopSignal  syscall.Signal
	StopTimeout time.Duration
	Restart     Restart
	Fencing     FencingPolicy
	Once        bool // the command's own end ends the service here
}

// FencingPolicy says how a former active that cannot be asked is dealt with.
type FencingPolicy struct {
	Grace     time.Duration
	Steps     []fencing.Step
	OnFailure fencing.OnFailure
}
