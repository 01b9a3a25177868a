package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"time"

	"understudy/election"
)

// In one of so many seeds, also of the calm ones, supervisors find ZooKeeper's servers by their names, and the name server is away now and
// then. What is dialed by name there goes through election.Resolver, as it does for real.
const (
	namesIn   = 13
	namesFrom = 8
)

// names adds such faults to the episodes that are drawn. It has a stream of its own: the others are what they were.
func (p *Plan) names() {
	if p.Seed%namesIn != namesFrom {
		return
	}
	p.Named = true
	r := rand.New(rand.NewPCG(p.Seed, 43))
	for i := range p.Episodes {
		e := &p.Episodes[i]
		if r.IntN(4) == 0 {
			continue
		}
		f := Fault{Kind: NamesAway, Node: r.IntN(p.Nodes), Server: -1, N: r.IntN(1 << 16), At: drawn(r, e.Length/2), For: drawn(r, e.Length)}
		e.Faults = append(e.Faults, f)
		if !p.Calm { // something that has servers dialed meanwhile
			with := p.fault(r, pick(r, RestartServer, CutLink, CrashSupervisor, StopSupervisor, NewLeader, PowerOff, KillGuardians))
			with.Node, with.At = f.Node, f.At+drawn(r, f.For)
			e.Length = max(e.Length, with.At+with.For)
			e.Faults = append(e.Faults, with)
		}
		sortFaults(e.Faults)
	}
}

// resolving is how long it takes until a resolver asks again that was asked while the name server was away, and until the next dial.
func (p *Plan) resolving() time.Duration {
	if p.Named {
		return 2 * resolverAsks
	}
	return 0
}

// A resolver asks so often, and waits for so long each time.
const (
	resolverTries = 2
	resolverAsks  = 5 * time.Second
)

// namesAway is a name server that is away, for a host.
type namesAway struct {
	silent bool // else another one says that it cannot tell
	noted  bool // a look-up has failed
}

// loseNames has the name server be away, for one host or for all. World.mu is held, as it is at the end.
func (hf *hostFaults) loseNames(f Fault, n *node) (end func(), done bool) {
	away := &namesAway{silent: f.N%2 == 0}
	var struck []*host
	for _, h := range hf.hosts {
		if (h == n.host || f.N/2%2 == 0) && h.unnamed == nil {
			h.unnamed = away
			struck = append(struck, h)
		}
	}
	if len(struck) == 0 || !hf.plan.Named {
		return nil, false
	}
	hf.say("%v", f)
	return func() {
		hf.say("over: %v", f)
		for _, h := range struck {
			h.unnamed = nil
		}
	}, true
}

// lookup is a resolver's, for a process behind a gate.
func (h *host) lookup(ctx context.Context, by *gate, name string) ([]string, error) {
	failed := &net.DNSError{Err: "server misbehaving", Name: name, IsTemporary: true}
	for range resolverTries {
		if !h.w.sleep(ctx, h.w.draw(h.asking, 2*time.Millisecond)+1) || !by.pass() {
			return nil, errCrashed
		}
		h.w.mu.Lock()
		away := h.unnamed
		if away != nil && !away.noted {
			away.noted = true
			h.w.nemesis.noteFault(NamesAway)
		}
		h.w.mu.Unlock()
		switch {
		case away == nil:
			return []string{strings.Replace(name, "zk", addressPrefix, 1)}, nil
		case !away.silent:
			return nil, failed
		}
		h.w.sleep(ctx, resolverAsks)
	}
	failed.Err, failed.IsTimeout = "i/o timeout", true
	return nil, failed
}

// addressPrefix is that of servers' addresses, in the place of their names'.
const addressPrefix = "192.0.2."

// resolver is what a supervisor finds servers with; nil: it has their addresses.
func (i *incarnation) resolver() *election.Resolver {
	if !i.node.w.plan.Named {
		return nil
	}
	return &election.Resolver{Dial: i.dial, Lookup: func(ctx context.Context, name string) ([]string, error) {
		return i.node.host.lookup(ctx, i.gate, name)
	}}
}

// finds has a guardian find a server, by the addresses that it was given or else by its name.
func (g *guardian) finds(ctx context.Context, t *election.Ticket, address string) error {
	name, _, _ := strings.Cut(address, ":")
	if !g.w.plan.Named || slices.Contains(t.Addresses[name], strings.Replace(name, "zk", addressPrefix, 1)) {
		return nil
	}
	_, err := g.host.lookup(ctx, g.gate, name)
	return err
}

func (f Fault) nameless() string {
	return fmt.Sprintf("%s, %s", []string{"it does not answer", "it cannot tell"}[f.N%2], []string{"for all", "for this host"}[f.N/2%2])
}
