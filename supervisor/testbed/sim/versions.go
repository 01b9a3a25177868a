package sim

import (
	"math/rand/v2"

	"understudy/supervisor/guard"
)

// In one of so many seeds a supervisor becomes one of a later revision, which has a word that its guardians do not know, since they are of the
// revision before, until they are replaced.
const (
	versionsIn   = 23
	versionsFrom = 12
)

// versions adds such upgrades to the episodes that are drawn. It has a stream of its own: the others are what they were.
func (p *Plan) versions() {
	if p.Seed%versionsIn != versionsFrom {
		return
	}
	r := rand.New(rand.NewPCG(p.Seed, 59))
	p.NewWord = pick(r, guard.OpArm, guard.OpEffects) // without OpMove no copy could be promoted, and an upgrade beyond that is refused
	for i := range p.Episodes {
		e := &p.Episodes[i]
		f := Fault{Kind: MixVersions, Node: r.IntN(p.Nodes), Active: r.IntN(3) > 0, N: wellUpgraded, At: drawn(r, e.Length/2)}
		if r.IntN(3) > 0 {
			e.Faults = append(e.Faults, f)
		}
		for range r.IntN(3) { // what has the word used
			with := p.fault(r, pick(r, GiveOrder, KillChild, StopSupervisor, CutLink, BadProgram, ChangeConfig, KillGuardian))
			if p.Calm {
				break
			}
			with.Node, with.Active, with.At = f.Node, f.Active, f.At+drawn(r, e.Length/2)
			if p.Replicated && with.Kind == ChangeConfig && with.Way == editOrder { // copies are in no queue
				continue
			}
			e.Length = max(e.Length, with.At+with.For)
			e.Faults = append(e.Faults, with)
		}
		sortFaults(e.Faults)
	}
}

// upgradeBeyond is an upgrade beyond what the guardians know. World.mu is held.
func (hf *hostFaults) upgradeBeyond(f Fault, n *node) (end func(), done bool) {
	if hf.plan.NewWord == "" {
		return nil, false
	}
	return hf.upgrade(f, n)
}

// read is a message as the guardian understands it.
func (g *guardian) read(m *guard.Message) *guard.Message {
	if !g.former || m.Op != g.w.plan.NewWord {
		return m
	}
	g.w.nemesis.noteFault(MixVersions)
	g.w.say("%s: guardian %d does not know the word %q", g.node.name, g.index+1, m.Op)
	other := *m
	other.Op = "of a later revision"
	return &other
}
