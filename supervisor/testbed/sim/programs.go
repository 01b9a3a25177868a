package sim

import "time"

// programs is how the programs and helpers of services behave. World.mu guards it.
type programs struct {
	*world
	trials map[string]*trouble   // by service
	ailing map[ailment]*sickness // what says no, and how
}

// trouble is how a service's program behaves while a fault of it lasts.
type trouble struct {
	life   time.Duration
	code   int
	absent bool
	side   bool          // only the second program
	node   string        // only there; "": everywhere
	slow   time.Duration // what each start takes, whatever comes of it
}

// spoil has a service's program behave so until it is mended.
func (ps *programs) spoil(service string, bad *trouble) { ps.trials[service] = bad }

func (ps *programs) mend(service string) { delete(ps.trials, service) }

// startTakes is what a start takes now, besides.
func (ps *programs) startTakes(service string) time.Duration {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if bad := ps.trials[service]; bad != nil {
		return bad.slow
	}
	return 0
}

// natureOf draws how a program that is started now is going to behave. False: there is no such program.
func (ps *programs) natureOf(t *tree, program string) (nature, bool) {
	if program == prepareCommand || program == recloneCommand {
		return ps.prepareTakes(t), true
	}
	if program != mainProgram && program != sideProgram {
		return ps.helper(program, t), true
	}
	p, r := ps.plan, t.host.rng
	n := nature{dies: drawn(r, p.Dying), yields: drawn(r, p.StopTimeout*3/2), ignoresTERM: r.IntN(3) == 0, offspring: r.IntN(3)}
	if r.IntN(2) == 0 {
		n.yields = drawn(r, 10*time.Millisecond)
	}
	n.strays, n.headless = r.IntN(8) == 0, r.IntN(4) == 0
	bad := ps.trials[t.service]
	switch {
	case ps.course.quiet || bad == nil || bad.side && program != sideProgram || bad.node != "" && bad.node != t.node:
	case bad.absent:
		return n, false
	default:
		n.life, n.code = bad.life/2+drawn(r, bad.life), bad.code
	}
	return n, true
}

// helper is how a helper of a service behaves. World.mu is held.
func (ps *programs) helper(what string, t *tree) nature {
	longest := helperLength
	if what == undoCommand {
		longest = max(longest, ps.plan.Undo/2)
	}
	n := nature{life: 1 + drawn(t.host.rng, longest), dies: drawn(t.host.rng, ps.plan.Dying), code: ps.withoutDevice(t, what)}
	if bad := ps.ailing[ailment{t.service, what}]; bad != nil && (bad.node == "" || bad.node == t.node) {
		n.code = 1
		if bad.hangs {
			n.life = 0
		}
	}
	return n
}

// ailment is what of a service says no.
type ailment struct{ service, what string }

// sickness is how an ailment shows.
type sickness struct {
	node  string // only there; "": everywhere
	hangs bool
}

// sicken has a service's helper fail. World.mu is held, as it is at the end.
func (ps *programs) sicken(f Fault) (end func(), done bool) {
	if !ps.plan.Helpers {
		return nil, false
	}
	a := ailment{ps.plan.services()[f.N%ps.plan.Services], []string{healthCheck, precheck, activeHook}[f.N/4%3]}
	bad := &sickness{hangs: f.N/16%4 == 0}
	if a.what == precheck || f.N/64%2 == 0 {
		bad.node = ps.nodes[f.Node].name
	}
	ps.say("%v", f)
	ps.ailing[a] = bad
	return func() {
		if ps.ailing[a] == bad {
			ps.say("over: %v", f)
			delete(ps.ailing, a)
		}
	}, true
}
