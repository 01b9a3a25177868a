package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/fencing"
	"understudy/fencing/agent"
)

// In one of three seeds whose nodes have agents, what listens at a node's address is not its agent for a while, or is out of order:
// it answers anything, now this, now that. Of what it is asked about it does not say that it is dead: nobody could tell.

// lies adds such faults to the episodes that are drawn. It has a stream of its own: the others are what they were.
func (p *Plan) lies() {
	r := rand.New(rand.NewPCG(p.Seed, 47))
	if !p.Agents || p.Calm || r.IntN(3) > 0 {
		return
	}
	for i := range p.Episodes {
		e := &p.Episodes[i]
		f := Fault{Kind: AgentLies, Active: r.IntN(4) > 0, Node: r.IntN(p.Nodes), Server: -1, At: drawn(r, e.Length)}
		f.For = drawn(r, 4*p.Timeout)
		e.Length = max(e.Length, f.At+f.For)
		e.Faults = append(e.Faults, f)
		if r.IntN(2) == 0 { // so that it is asked
			with := p.fault(r, pick(r, CrashSupervisor, CutLink, PowerOff, StickProcesses, FreezeSupervisor))
			with.Node, with.Active, with.Server, with.At = f.Node, f.Active, -1, min(f.At+drawn(r, f.For), e.Length)
			e.Length = max(e.Length, with.At+with.For)
			e.Faults = append(e.Faults, with)
		}
		sortFaults(e.Faults)
	}
}

// liar answers in place of a node's agent. World.mu guards it.
type liar struct {
	node *node
	rng  *rand.Rand
}

// lie has something else answer in place of a node's agent. World.mu is held, as it is at the end.
func (hf *hostFaults) lie(f Fault, n *node) (end func(), done bool) {
	if n.liar != nil {
		return nil, false
	}
	hf.say("%v", f)
	n.liar = &liar{n, hf.stream(fmt.Sprint(n.name, " lies at ", time.Since(hf.began)))}
	return func() {
		hf.say("over: %v", f)
		n.liar = nil
	}, true
}

// take is told of a connection that has come. World.mu is held.
func (l *liar) take(c net.Conn) {
	w, n := l.node.w, l.node
	late := drawn(l.rng, 15*time.Second)
	what := l.rng.IntN(7)
	w.say("%s: something else is asked in place of its agent (%d)", n.name, what)
	self := agent.Answer{Node: n.name, Machine: n.host.machine, Boot: n.host.boot()}
	says := func(verdict fencing.Liveness, err error) {
		server := &agent.Server{
			Keys: agentKeys, Self: self, Logger: hclog.NewNullLogger(),
			Prove: func(context.Context, agent.Question) (fencing.Liveness, string, error) {
				return verdict, "its word", err
			},
		}
		w.wait.Go(func() { server.Answer(context.Background(), c) })
	}
	switch what {
	case 0:
		says(fencing.Unknown, nil)
	case 1:
		says(fencing.Alive, nil)
	case 2:
		says(fencing.Dead, errors.New("it does not know"))
	case 3: // true of another machine
		self.Node, self.Machine = "x", "another machine"
		says(fencing.Dead, nil)
	case 4: // the same, where all have one machine's id
		self.Node, self.Boot = "x", "another boot"
		says(fencing.Dead, nil)
	case 5:
		garbage := make([]byte, l.rng.IntN(300))
		for i := range garbage {
			garbage[i] = byte(l.rng.Uint32())
		}
		_, _ = c.Write(garbage)
		w.after(late, func() { _ = c.Close() })
	default: // its own agent's answer, late
		w.after(late, func() {
			if !n.host.on || !n.ear.held() || !n.ear.take(c.(*conn)) {
				_ = c.Close()
			}
		})
	}
}
