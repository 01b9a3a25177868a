package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"understudy/supervisor/testbed/zkfaults"
)

// In one of so many seeds, of those with three servers, observers stand beside these, of which clients are also; and but for the calm seeds
// servers are removed and added, and become voters and observers, while other things fail.
const (
	membersIn   = 19
	membersFrom = 14
)

// all is how many servers there are, of any part.
func (p *Plan) all() int { return p.Servers + p.Observers }

// members adds such faults to the episodes that are drawn. It has a stream of its own: the others are what they were.
func (p *Plan) members() {
	if p.Seed%membersIn != membersFrom || p.Servers == 1 {
		return
	}
	r := rand.New(rand.NewPCG(p.Seed, 53))
	p.Observers = 1 + r.IntN(2)
	for i := range p.Episodes {
		e := &p.Episodes[i]
		if p.Calm {
			continue
		}
		for range r.IntN(4) {
			f := p.fault(r, ChangeServers)
			f.At = drawn(r, e.Length)
			e.Faults = append(e.Faults, f)
			if r.IntN(2) == 0 {
				with := p.fault(r, pick(r, IsolateServer, RestartServer, NewLeader, CutLink, SplitNetwork, CrashSupervisor, KillGuardians, BreakReply))
				with.At = max(0, f.At-drawn(r, p.Timeout/4)) + drawn(r, p.Timeout/2)
				e.Length = max(e.Length, with.At+with.For)
				e.Faults = append(e.Faults, with)
			}
		}
		sortFaults(e.Faults)
	}
}

var partNames = [...]string{zkfaults.Voter: "a voter", zkfaults.Observer: "an observer", zkfaults.Removed: "none"}

// membership is which server becomes what.
func (f Fault) membership(servers int) (server int, part zkfaults.Part) {
	return f.N % servers, zkfaults.Part(f.N / 16 % len(partNames))
}

// changeServers has an operator give a server another part, as soon as the ensemble takes that.
func (sf *serverFaults) changeServers(f Fault) (end func(), done bool) {
	e := sf.zk.ensemble
	if e == nil {
		return nil, false
	}
	server, part := f.membership(sf.plan.all())
	over := false
	var try func()
	try = func() {
		sf.mu.Lock()
		late := over || sf.course.over
		sf.mu.Unlock()
		if late {
			return
		}
		clients := e.Connected(server)
		if !e.Reconfigure(server, part) {
			time.AfterFunc(sf.plan.Tick, try)
			return
		}
		sf.mu.Lock()
		defer sf.mu.Unlock()
		over = true
		sf.nemesis.noteFault(f.Kind)
		sf.say("zk: zk%d, with %d clients, is %s from now on", server+1, clients, partNames[part])
	}
	try()
	return func() {
		sf.mu.Lock()
		defer sf.mu.Unlock()
		over = true
	}, true
}

func (f Fault) memberWords() string {
	_, part := f.membership(3)
	return fmt.Sprintf("%d becomes %s", f.N, partNames[part])
}
