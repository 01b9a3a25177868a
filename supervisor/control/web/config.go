package web

import (
	"context"
	"crypto/tls"

	"github.com/hashicorp/go-hclog"

	"understudy/supervisor/control"
)

// Config is what a Server serves, and where.
type Config struct {
	Listen  string // host:port
	Node    string
	Host    string   // the machine's name
	Hosts   []string // more names that this side is called by
	Version string
	Board   *Board
	Cluster cluster
	// Token reads the secret that those show who change something; nil: nobody may. It is called with each such request.
	Token func() (string, error)
	// ReadToken reads the secret that those show who look, unless they show the other one; nil: everybody may.
	ReadToken func() (string, error)
	// Certificate is what connections are secured with; nil: they are not. It is called with each connection.
	Certificate func() (*tls.Certificate, error)
	// Unserved is told why Listen cannot be had, and "" once it can; nil: nobody asks.
	Unserved func(why string)
	Logger   hclog.Logger
}

// cluster is what ZooKeeper knows, and steers: a control.SharedCluster. Each call ends with its context.
type cluster interface {
	Status(ctx context.Context, services ...string) (control.Status, error)
	History(ctx context.Context, services ...string) ([]control.HistoryEntry, error)
	Pause(ctx context.Context, service string, paused bool, by, why string) (changed bool, err error)
	Stop(ctx context.Context, service string, stopped bool, by, why string) (changed bool, err error)
	Switchover(ctx context.Context, h control.SwitchoverRequest) (to string, err error)
	Restart(ctx context.Context, service, by string) error
	Reload(ctx context.Context, service, by string) error
	OrderCopy(ctx context.Context, r control.CopyRequest) error
	Drain(ctx context.Context, d control.Draining) (changed bool, leaving []control.Departure, err error)
	Undrain(ctx context.Context, node, by string) (changed bool, err error)
	// Close gives up what the other calls keep from one to the next. They may be called again.
	Close()
}
