package sim

import "math/rand/v2"

// In one of so many seeds servers do not keep sessions for a while: whoever comes back is given another one.
const (
	forgetsIn   = 6
	forgetsFrom = 4
)

func (p *Plan) forgetful() bool { return p.Seed%forgetsIn == forgetsFrom && !p.Calm }

// forgets adds such faults to the episodes that are drawn. It has a stream of its own: the others are what they were.
func (p *Plan) forgets() {
	if !p.forgetful() {
		return
	}
	r := rand.New(rand.NewPCG(p.Seed, 18))
	for i := range p.Episodes {
		e := &p.Episodes[i]
		for range r.IntN(3) {
			f := p.fault(r, ForgetSessions)
			f.At = drawn(r, e.Length)
			e.Faults = append(e.Faults, f)
		}
		sortFaults(e.Faults)
	}
}

// forget has servers forget, and a node come back to them.
func (sf *serverFaults) forget(f Fault) (end func()) {
	sf.say("%v", f)
	for _, s := range sf.zk.some(f.Server) {
		s.ForgetSessions(true)
	}
	sf.nemesis.links.disturbLink(Fault{Kind: CutLink, Node: f.Node, Server: -1, Way: cutReset})()
	return func() {
		sf.say("over: %v", f)
		for _, s := range sf.zk.some(f.Server) {
			s.ForgetSessions(false)
		}
	}
}
