package election

import (
	"context"
	"slices"
	"time"
)

// Failsafe is what a breadcrumb says whose writer may outlast a loss of the whole ensemble: it goes on only while each of the
// members has promised not to start the service. Without any member it does not: nobody could tell it a loss of ZooKeeper from
// its own isolation.
type Failsafe struct {
	Members []Peer `json:"members"`
}

// Peer is a node that is asked for a promise, and where.
type Peer struct {
	Node    string `json:"node"`
	Machine string `json:"machine,omitempty"`
	Agent   string `json:"agent,omitempty"`
}

// Binds tells whether it says anything.
func (f *Failsafe) Binds() bool { return f != nil && len(f.Members) > 0 }

// Lists tells whether a node is one of the members: then the writer of the breadcrumb could not go on without its promise.
func (f *Failsafe) Lists(p Peer) bool {
	return p.Machine != "" && p.Agent != "" && slices.Contains(f.Members, p)
}

// PromiseLength is how long a promise binds the node that gives it, from when it is asked.
func PromiseLength(session time.Duration) time.Duration { return session }

// PromiseReach is how long the asker may rely on a promise, from when the question was sent. P1: it is shorter than PromiseLength by
// the difference that clocks' rates may have, and by the time that the killing, or a watchdog in its place, may take.
func PromiseReach(session time.Duration) time.Duration { return session - session/20 }

// AskAfter is how old the newest acknowledged write has to be before others are asked for promises.
func AskAfter(session time.Duration) time.Duration { return LeaseLength(session) / 2 }

// GoneAfter is how old the newest acknowledged write is when a node says that it sees no ensemble: three heartbeats.
func GoneAfter(session time.Duration) time.Duration { return session / 4 }

// KillEarly is how long before a lease's end a child is killed where the lease of others may go on: it leaves the time for a proof.
func KillEarly(session time.Duration) time.Duration { return session / 30 }

// Sighted tells whether a server grants a new session, which takes a quorum: then there is an ensemble, though it may not take
// us back. One that has lost its data hangs up on every client that has seen more, for ever.
func (s *Session) Sighted(ctx context.Context) bool {
	t := s.Ticket()
	t.Session, t.Password = 0, make([]byte, 16)
	dial := dialing(s.cfg.Dial, t.TLS)
	for _, server := range t.Servers {
		if t.closeAt(ctx, dial, server, nil, true) == nil {
			return true
		}
	}
	return false
}
