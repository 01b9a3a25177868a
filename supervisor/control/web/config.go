package web

import (
	"context"
	"crypto/tls"
	"errors"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
)

// Config is what a Server serves, and where.
type Config struct {
	Listen  string // host:port
	Node    string
	Host    string   // the machine's name
	Hosts   []string // more names that this side is called by
	Version string
	Board   *Board
	Cluster Cluster
	// Token reads the secret that those show who change something; nil: nobody may. It is called with each such request.
	Token func() (string, error)
	// ReadToken reads the secret that those show who look, unless they show the other one; nil: everybody may.
	ReadToken func() (string, error)
	// Certificate is what connections are secured with; nil: they are not. It is called with each connection.
	Certificate func() (*tls.Certificate, error)
	Logger      hclog.Logger
}

// Cluster is what ZooKeeper knows. Each call ends with its context.
type Cluster interface {
	// Status is a JSON object that has services and nodes, as `understudy status --json` prints it.
	Status(ctx context.Context) ([]byte, error)
	// History lists the activations of a service, or of all when it is empty, newest first.
	History(ctx context.Context, service string) ([]Activation, error)
	// Pause has nobody promoted from now on, or lets it happen again; it tells whether that is a change.
	Pause(ctx context.Context, service string, paused bool, by, why string) (changed bool, err error)
	// Switchover has another node become active, and waits until the service is ready there.
	Switchover(ctx context.Context, h Handover) (to string, err error)
	// Restart starts the programs of the active node anew, and waits until that is done.
	Restart(ctx context.Context, service, by string) error
	// Reload sends the programs of the active node their reload signal.
	Reload(ctx context.Context, service, by string) error
	// Close gives up what the other calls keep from one to the next. They may be called again.
	Close()
}

// Handover is a switchover that is asked for.
type Handover struct {
	Service, To string // To is empty for whoever is first
	Force       bool   // although the target does not look fit
	By          string
	Tell        func(step string) // each step, in words
}

// What a Cluster says of an order that it did not carry out.
var (
	ErrUnknown = errors.New("unknown") // there is no such service or node
	ErrRefused = errors.New("refused") // it makes no sense now
)

// Activation is one entry of the history, as `understudy history --json` prints it.
type Activation struct {
	Service string          `json:"service"`
	Node    string          `json:"node"`
	Token   int64           `json:"token"`
	Start   time.Time       `json:"start"`
	End     *time.Time      `json:"end"`
	Active  bool            `json:"active"`
	RanMs   *int64          `json:"ran_ms"`
	GapMs   *int64          `json:"gap_ms"`
	Reason  election.Reason `json:"reason"`
	Fenced  election.Proof  `json:"fenced"`
	FenceMs int64           `json:"fence_ms"`
}
