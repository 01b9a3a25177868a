package sim

import "strings"

// What is broken rarely is soon noticed in a world in which little else happens: these changes are made to the simulation, beside a sabotage.

// losses has such a plan lose the ensemble again and again, and little else.
var losses = change{"supervisor/testbed/sim/kinds.go", "slices.Repeat([]Kind{LoseEnsemble}, 15)", "slices.Repeat([]Kind{LoseEnsemble}, 150)"}

// lossesAnd has it lose the ensemble as often as other kinds of faults strike.
func lossesAnd(kinds string) change {
	return change{"supervisor/testbed/sim/kinds.go", "slices.Repeat([]Kind{LoseEnsemble}, 15)",
		"append(slices.Repeat([]Kind{LoseEnsemble}, 100), slices.Repeat([]Kind{" + kinds + "}, 100)...)"}
}

// outages makes every plan one with failsafe services, so that what breaks only those is soon noticed.
var outages = change{"supervisor/testbed/sim/outage.go", "	if r.IntN(3) > 0 {\n		return\n	}\n", "	_ = r.IntN(3)\n"}

// pairs gives every plan two services.
var pairs = change{"supervisor/testbed/sim/plan.go", "Services: pick(r, 1, 1, 2)", "Services: pick(r, 2, 2, 2)"}

// sleepers freezes all supervisors within a lease of the loss of the ensemble.
var sleepers = change{"supervisor/testbed/sim/outage.go", "	var ends []func()\n	at := f.For", `	for _, n := range sf.nodes {
		time.AfterFunc(sf.plan.Timeout*time.Duration(f.N%100)/200, func() {
			sf.mu.Lock()
			defer sf.mu.Unlock()
			if !sf.plan.Calm && n.inc != nil && n.inc.running() && n.inc.mayLose(1) {
				n.inc.halt(sf.plan.Timeout)
			}
		})
	}
	var ends []func()
	at := f.For`}

// watchdogs gives every plan watchdogs.
var watchdogs = change{"supervisor/testbed/sim/device.go", "	if p.Timeout < leastWatched || r.IntN(4) > 0 {", "	if p.Timeout < leastWatched || r.IntN(4) > 4 {"}

// wipes has operators delete all znodes of a service again and again.
var wipes = change{"supervisor/testbed/sim/kinds.go", "DeleteService, StickProcesses,", strings.Repeat("DeleteService, ", 60) + "StickProcesses,"}

// stuck has the kernel hold processes all the time.
var stuck = change{"supervisor/testbed/sim/kinds.go", "DeleteService, StickProcesses,", "DeleteService, " + strings.Repeat("StickProcesses, ", 60)}

// pauses has operators pause services again and again, while their locks become free: the news of the one and of the other cross.
var pauses = []change{
	{"supervisor/testbed/sim/kinds.go", "	PauseService, PauseService, GiveOrder,", "	PauseService, PauseService, PauseService, PauseService, PauseService, PauseService, PauseService, PauseService, GiveOrder,"},
	{"supervisor/testbed/sim/orders.go", "	done = o.order(name, true)\n	return func() { o.order(name, false) }, done\n", `	start := func() {}
	o.mu.Lock()
	for p := range o.check.services[name].living {
		for _, n := range o.nodes {
			if !o.plan.Calm && n.name == p.tree.node && n.inc != nil && n.inc.running() && n.inc.mayLose(1) {
				n.crash(true)
				start = n.start
			}
		}
	}
	o.mu.Unlock()
	time.Sleep(time.Duration(f.N%10) * time.Millisecond)
	done = o.order(name, true)
	return func() {
		o.order(name, false)
		o.mu.Lock()
		defer o.mu.Unlock()
		start()
	}, done
`},
}

// strangers has strangers reach the servers in every plan.
var strangers = change{"supervisor/testbed/sim/stranger.go", "r.IntN(strangersIn) > 0 {", "r.IntN(strangersIn) > strangersIn {"}

// keepers has sessions outlast their supervisors in every plan.
var keepers = change{"supervisor/testbed/sim/kept.go", "	hauntedIn   = 5\n	hauntedFrom = 3\n", "	hauntedIn   = 1\n	hauntedFrom = 0\n"}

// unequals has the configs of nodes differ in every plan.
var unequals = change{"supervisor/testbed/sim/unequal.go", "	unequalIn   = 4\n	unequalFrom = 1\n", "	unequalIn   = 1\n	unequalFrom = 0\n"}

// commands has operators of every plan drain, forget and confirm.
var commands = change{"supervisor/testbed/sim/commands.go", "	commandsIn   = 13\n	commandsFrom = 7\n", "	commandsIn   = 1\n	commandsFrom = 0\n"}

// drills gives every plan drills.
var drills = change{"supervisor/testbed/sim/drill.go", "	if p.Seed%drillsIn == drillsFrom && !p.Calm {", "	if drillsFrom < drillsIn && !p.Calm {"}

// held has the kernel hold processes again and again, and little else happen.
var held = change{"supervisor/testbed/sim/kinds.go", "DeleteService, StickProcesses,", "DeleteService, StickProcesses, StickProcesses, StickProcesses, StickProcesses, " +
	"StickProcesses, StickProcesses, StickProcesses, StickProcesses, StickProcesses, StickProcesses, StickProcesses, StickProcesses, StickProcesses,"}

// blinds leaves every second new guardian at first unable to open what it is told of.
var blinds = change{"supervisor/testbed/sim/twins.go", "r.IntN(4) == 0 {", "r.IntN(4) < 2 {"}

// effects has the services of every plan do what outlives their processes.
var effects = change{"supervisor/testbed/sim/effects.go", "	effectsIn   = 6\n	effectsFrom = 1\n", "	effectsIn   = 1\n	effectsFrom = 0\n"}

// badNotes has disks fail in all of these.
var badNotes = change{"supervisor/testbed/sim/badnotes.go", "	badNotesIn   = 24\n	badNotesFrom = 7\n", "	badNotesIn   = 1\n	badNotesFrom = 0\n"}

// survivors has a boot undo nothing of it, mortals everything.
var (
	survivors = change{"supervisor/testbed/sim/effects.go", "	p.Survives = p.Seed/effectsIn%3 == 0\n", "	p.Survives = true\n"}
	mortals   = change{"supervisor/testbed/sim/effects.go", "	p.Survives = p.Seed/effectsIn%3 == 0\n", "	p.Survives = false\n"}
)

// rewinds has the data of every plan with one server set back.
var rewinds = change{"supervisor/testbed/sim/rewind.go", "	rewindsIn   = 4\n	rewindsFrom = 3\n", "	rewindsIn   = 1\n	rewindsFrom = 0\n"}

// copies makes the services of every plan replicated.
var copies = change{"supervisor/testbed/sim/replicated.go", "	replicatedIn   = 7\n	replicatedFrom = 4\n", "	replicatedIn   = 1\n	replicatedFrom = 0\n"}

// lives has three copies of each service, or four, the primary's program told which of the others it counts, and hosts and copies fail often.
var lives = []change{
	copies,
	{"supervisor/testbed/sim/lives.go", "	if now := time.Now(); f.copy.stalls.Before(now) && cv.rng.IntN(stalling) == 0 {\n", "	if now := time.Now(); f.copy.stalls.Before(now) && cv.rng.IntN(20) == 0 {\n"},
	{"supervisor/testbed/sim/replicated.go", "r.Interval = []string{copiesCommand}, 0, p.Timeout/2", "r.Interval = []string{copiesCommand}, 0, p.Timeout/8"},
	{"supervisor/testbed/sim/kinds.go", "DeleteInStopping, StopInFencing, LateInscription, ", "DeleteInStopping, StopInFencing, LateInscription, " + strings.Repeat("PowerOff, ", 60)},
	{"supervisor/testbed/sim/lives.go", "p.Seed/replicatedIn%3 > 0", "p.Seed/replicatedIn > 0"},
	{"supervisor/testbed/sim/plan.go", "Nodes: pick(r, 2, 2, 2, 3, 3, 4)", "Nodes: pick(r, 3, 3, 3, 3, 3, 4)"},
}

// preparations have each copy prepared that starts beside a primary whose data it may not have.
var preparations = change{"supervisor/testbed/sim/preparing.go", "p.Replicated && p.Seed/replicatedIn%2 == 0", "p.Replicated"}

// hides has followers of replicated services look at the primary, and at times not reach it.
var hides = change{"supervisor/testbed/sim/hidden.go", "	hiddenIn   = 3\n	hiddenFrom = 2\n", "	hiddenIn   = 1\n	hiddenFrom = 0\n"}

// demotions has operators switch over, and each primary demoted.
var demotions = []change{
	{"supervisor/testbed/sim/demoting.go", "p.Replicated && p.Seed/replicatedIn/2%2 == 0", "p.Replicated"},
	{"supervisor/testbed/sim/kinds.go", "	PauseService, PauseService, GiveOrder,", "	PauseService, PauseService, " + strings.Repeat("GiveOrder, ", 60)},
}

// stopsSoon has supervisors asked to stop that are about to promote a copy.
var stopsSoon = change{"supervisor/testbed/sim/kinds.go", "DeleteInStopping, StopInFencing, LateInscription, ", "DeleteInStopping, " +
	strings.Repeat("StopInFencing, CrashSupervisor, StopSupervisor, ", 20) + "LateInscription, "}
