package election

import (
	"context"
	"slices"
	"time"
)

// Failsafe is the part of a breadcrumb whose writer may outlast a loss of the whole ensemble: it goes on only while each of the
// members has promised not to start the service. Without members it stops: it could not tell a loss of ZooKeeper from its own
// isolation.
type Failsafe struct {
	Members []Peer `json:"members"`
}

// Peer is a node that can promise, and its agent's address.
type Peer struct {
	Node    string `json:"node"`
	Machine string `json:"machine,omitempty"`
	Agent   string `json:"agent,omitempty"`
}

// Binds reports whether it lists any member.
func (f *Failsafe) Binds() bool { return f != nil && len(f.Members) > 0 }

// Lists reports whether a node is one of the members: then the writer of the breadcrumb cannot go on without its promise.
func (f *Failsafe) Lists(p Peer) bool {
	return p.Machine != "" && p.Agent != "" && slices.Contains(f.Members, p)
}

// PromiseLength is how long a promise binds the node that gives it, from the request.
func PromiseLength(lease time.Duration) time.Duration { return 2 * lease }

// PromiseReach is how long the asker may rely on a promise, from the sending of the request. P1: it is shorter than PromiseLength by
// the difference that clocks' rates may have, and by the time that the kill, or a watchdog in its place, may take.
func PromiseReach(lease time.Duration) time.Duration { return 2*lease - lease/10 }

// AskAfter is how old the newest acknowledged write must be before a node asks others for promises.
func AskAfter(lease time.Duration) time.Duration { return lease / 2 }

// GoneAfter is how old the newest acknowledged write is when a node declares that no ensemble answers: three heartbeats.
func GoneAfter(lease time.Duration) time.Duration { return lease / 2 }

// KillEarly is how long before its lease's end a child is killed if other services' lease may go on: it leaves time for a proof.
func KillEarly(lease time.Duration) time.Duration { return lease / 15 }

// HasQuorum reports whether a server grants a new session, which needs a quorum: then there is an ensemble, though it may not accept
// our old session. An ensemble that has lost its data hangs up for ever on every client that has seen more.
func (s *Session) HasQuorum(ctx context.Context) bool { return s.granting(ctx) != "" }

// granting names a server that grants a new session; "": none does. The one that we are connected to comes last.
func (s *Session) granting(ctx context.Context) string {
	t := s.Ticket()
	t.Session, t.Password = 0, make([]byte, 16)
	dial, here := s.cfg.dialing(), max(slices.Index(t.Servers, s.dialer.server()), 0)
	for _, server := range slices.Concat(t.Servers[here+1:], t.Servers[:here+1]) {
		if t.closeAt(ctx, dial, server, nil, closing{all: true}) == nil {
			return server
		}
	}
	return ""
}
