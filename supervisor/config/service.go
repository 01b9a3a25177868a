package config

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"understudy/supervisor/config/unitfile"
)

// Service is what runs on one node at a time: one process or several, in order, as one unit. A field's `doc` describes
// its key in the JSON schema; `oneof` names a group of keys of which one may be given.
type Service struct {
	// Processes has at least one item. A service written with command: has one, named MainProcess.
	Processes    []Process     `yaml:"processes,omitempty" oneof:"program" doc:"Several programs as one unit, in place of command. Each starts once the one before it is ready. They stop in reverse order."`
	Address      Addresses     `yaml:"address,omitempty" doc:"IP addresses that move with the service: one, a list, or {ip, device, announce}."`
	Election     Election      `yaml:"election" doc:"With race, the first node that takes the lock becomes active. With queue, nodes take turns in the order they came."`
	Contain      Contain       `yaml:"contain" doc:"How the program's processes are contained. auto takes the best way that works here. strict is auto without the last resort, and stops a program of which a process is found outside of its container. All services of a supervisor have the same."`
	Priority     int           `yaml:"priority" doc:"Nodes with a higher number are preferred."`
	Spread       string        `yaml:"spread,omitempty" doc:"A word. Services that have the same one stay on different nodes while they can."`
	Failback     bool          `yaml:"failback" doc:"Whether a preferred node that returns takes the service back."`
	Eligible     bool          `yaml:"eligible" doc:"Whether this node may ever become active."`
	Moves        Moves         `yaml:"moves" doc:"A service that has moved more often than this stays where it is until an operator resumes it."`
	OnLoss       OnLoss        `yaml:"on_zookeeper_loss" doc:"What to do if ZooKeeper acknowledges nothing until the lease ends. With stop, the programs are stopped. With failsafe, they continue while all other nodes agree. Requires fencing.agent on all nodes."`
	GraceDelay   time.Duration `yaml:"grace_delay" doc:"How long to wait before the program starts, if nothing proves that the previous node's program is dead."`
	ReloadSignal Signal        `yaml:"reload_signal" doc:"What 'understudy reload' sends to each process of the service."`
	ReloadCheck  Command       `yaml:"reload_check,flow,omitempty" doc:"A command that runs before the reload signal, as the program's user, for 30s at most. If it fails, no signal is sent."`
	Restart      Restart       `yaml:"restart" doc:"What to do if a process ends without an order."`
	Health       HealthCheck   `yaml:"health,omitempty" doc:"A check of the running service. If it fails, the service is restarted here, and later given to another node."`
	Precheck     Precheck      `yaml:"precheck,omitempty" doc:"A check on a standby. While it fails, the node does not wait for the lock."`
	Replicated   *Replicated   `yaml:"replicated,omitempty" doc:"The program runs on every node that has the service, and one copy is promoted."` // of a warm service as well, once it is read
	Warm         *Warm         `yaml:"warm,omitempty" doc:"The program runs on every node that may have the service, and the one on the active node is promoted."`
	Hooks        Hooks         `yaml:"hooks,omitempty" doc:"Commands that run when the service's state changes on this node."`
	Fencing      Fencing       `yaml:"fencing" doc:"How to make sure that the previous active node is dead when nothing else proves it."`
}

// MainProcess is the name of the only process of a service that is written with command:.
const MainProcess = "main"

// Moves bounds how often a service moves from node to node, over all nodes; Max 0 means that nothing bounds it.
type Moves struct {
	Max    int           `yaml:"max" doc:"How many unplanned moves are allowed. 0 means no limit."`
	Within time.Duration `yaml:"within" doc:"The time in which moves are counted."`
}

// Hooks are run when the service's state changes on this node. A hook without a command is not there.
type Hooks struct {
	OnActive  Hook `yaml:"on_active,omitempty" doc:"Runs once the service is ready here. If it fails, the service does not count as active."`
	OnStandby Hook `yaml:"on_standby,omitempty" doc:"Runs when the supervisor starts, and after each activation here. The supervisor does not wait for it."`
	OnFence   Hook `yaml:"on_fence,omitempty" doc:"Runs after the previous active node had to be fenced, with the result."`
	OnGiveUp  Hook `yaml:"on_give_up,omitempty" doc:"Runs when this node gives the service up after too many failures."`
}

// Hook is a command with a timeout.
type Hook struct {
	Command Command       `yaml:"command,flow" doc:"The program and its arguments."`
	Timeout time.Duration `yaml:"timeout" doc:"How long it may take before it is killed."`
}

// check checks all of a service but whether it has a command: defaults need none.
func (w written) check(p place) {
	if len(w.Processes) > 0 {
		w.checkProcesses(p)
	} else {
		w.Program.check(p)
		w.Ready.check(p.key("ready"))
	}
	s := w.Service
	s.Address.check(p.key("address"))
	checkChoice(p.key("election"), s.Election)
	checkChoice(p.key("contain"), s.Contain)
	checkBetween(p.key("priority"), s.Priority, -1_000_000, 1_000_000)
	s.Moves.check(p.key("moves"))
	checkNotNegative(p.key("grace_delay"), s.GraceDelay)
	s.OnLoss.check(p.key("on_zookeeper_loss"))
	checkReloadSignal(p.key("reload_signal"), syscall.Signal(s.ReloadSignal))
	s.ReloadCheck.checkGiven(p.key("reload_check"))
	s.Restart.check(p.key("restart"))
	s.Health.check(p.key("health"))
	if follower := p.key("health").key("follower"); s.Replicated == nil && s.Warm == nil && follower.given() {
		follower.noEffect("a program that runs beside the active one", "warm: or replicated:")
	}
	s.Precheck.check(p.key("precheck"))
	s.Replicated.check(p.key("replicated"), p, w)
	s.Warm.check(p.key("warm"), p, w)
	s.Hooks.check(p.key("hooks"))
	s.Fencing.check(p.key("fencing"))
	s.checkSlowness(p)
	least := profiles[ProfileFast].grace
	if s.GraceDelay < least && (len(s.Fencing.Methods) == 0 || s.Fencing.OnFailure == OnFailureGrace) {
		p.key("grace_delay").warn("%v is short: a program on a slow or overloaded host may take longer to die. %v at least is safe",
			s.GraceDelay, least)
	}
	if s.GraceDelay > longLoss && len(s.Fencing.Methods) == 0 {
		p.key("grace_delay").warn("%v is long: if a host is lost, its services start on another one only after that time", s.GraceDelay)
	}
	if !s.Eligible && p.on == "" && p.key("eligible").given() && !p.key("nodes").given() {
		p.key("eligible").warn("no node that reads this file ever runs the service: " +
			"for single nodes write nodes: {NODE: {eligible: false}}")
	}
	failback := p.key("failback").given()
	if !s.Eligible && s.Failback && (p.on == "" || failback) { // failback may be for the other nodes
		p.key("failback").and(p.key("eligible")).warn("has no effect: a node with eligible: false never takes the service")
	}
}

// unproved reports whether only a delay follows the loss of a host.
func (w written) unproved(p place) bool {
	return len(w.Fencing.Methods) == 0 && !p.asks && p.node.Watchdog.Mode != WatchdogRequired
}

// checkProcesses checks each process, and that they fit together.
func (w written) checkProcesses(p place) {
	if way := w.Ready.Way(); way != "" && p.key("ready").key(way).given() {
		p.key("ready").key(way).fault("does not go with processes: write it in one of them")
	}
	if w.Log.File != "" && p.key("log").key("file").given() {
		p.key("log").key("file").fault("does not go with processes: write it in one of them")
	}
	names := map[string]int{}
	for i, process := range w.Processes {
		at := p.key("processes").item(i)
		process.check(at)
		if j, twice := names[process.Name]; twice && process.Name != "" {
			at.key("name").fault("%s is the name of processes[%d] too: give each another name", quoted(process.Name), j)
		}
		if (len(process.Undo) > 0 || process.OCF != "") && !at.key("needs_proof").given() && !process.SurvivesBoot && w.unproved(p) {
			what := at.key("undo")
			if process.OCF != "" {
				what = at.key("ocf")
			}
			what.warn("if this host is lost, another node starts the service after a delay, and nothing proves that this is undone: " +
				"add a fencing method, fencing.agent, watchdog: {mode: required}, " +
				"or needs_proof: true (needs_proof: false says that a delay is enough)")
		}
		if process.Mount != nil && !at.key("needs_proof").given() && len(w.Fencing.Methods) == 0 {
			at.key("mount").warn("if this host is lost, no other node starts the service before an operator confirms: " +
				"add a fencing method (needs_proof: true says that this is meant)")
		}
		names[process.Name] = i
	}
}

// checkProgram refuses a service that runs nothing.
func (w written) checkProgram(p place) {
	if len(w.Command) > 0 || len(w.Processes) > 0 {
		return
	}
	key := p.key("command")
	if p.key("processes").given() {
		key = p.key("processes")
	}
	key.fault("missing: say which program to run")
}

// checkAlone refuses two writers of one log file: each would rotate it while the other writes. Of two programs that are ready at the same
// address, one would be told ready by the other's answer, if they run on one node.
func (w written) checkAlone(p place, taken map[string]string) {
	apart := p.on != "" || w.Spread != "" || !w.Eligible || p.key("nodes").given()
	each := func(p place, g Program) {
		_, rest, _ := strings.Cut(g.Ready.HTTP, "://")
		host, _, _ := strings.Cut(rest, "/")
		answers := cmp.Or(g.Ready.TCP, host)
		if apart {
			answers = ""
		}
		if other := taken[g.Log.File]; other != "" {
			p.key("log").key("file").fault("%s is the log of %s already: each process needs one of its own", quoted(g.Log.File), other)
		}
		if other := taken[answers]; other != "" {
			p.key("ready").key(g.Ready.Way()).warn(
				"%s is that of %s, too: if both run on one node, either is ready once one of them answers", answers, other)
		}
		for _, name := range []string{g.Log.File, answers} {
			if name != "" && taken[name] == "" {
				taken[name] = p.keys[0].String()
			}
		}
	}
	for i, process := range w.Processes {
		each(p.key("processes").item(i), process.Program)
	}
	if len(w.Processes) == 0 {
		each(p, w.Program)
	}
}

func (m Moves) check(p place) {
	if m.Max < 0 || m.Max > mostFailures {
		p.key("max").fault("%d is not a number from 1 to %d, or 0 for no bound", m.Max, mostFailures)
	}
	if m.Max > 0 {
		checkPositive(p.key("within"), m.Within)
	} else {
		checkNotNegative(p.key("within"), m.Within)
	}
	if m.Max > 1 && 0 < m.Within && m.Within < time.Duration(m.Max)*time.Second {
		p.key("within").and(p.key("max")).warn(
			"%d moves take longer than %v, so they are never counted as too many: make within longer", m.Max, m.Within)
	}
}

// setsAddress finds the command of iproute2 for an address.
var setsAddress = regexp.MustCompile(`\bip (-\S+ )*a(ddr(ess)?)? (a(dd)?|replace) `)

func (h Hooks) check(p place) {
	for i, hook := range h.all() {
		at := p.key(hookNames[i])
		hook.Command.checkGiven(at.key("command"))
		if unitfile.Leaves(hook.Command) {
			at.key("command").warn(
				"what its shell starts with & is killed when the hook ends: leave the & out, or write it among processes")
		}
		starts := slices.Contains(hook.Command, "start") || slices.Contains(hook.Command, "stop")
		if starts && unitfile.Asks(hook.Command) {
			at.key("command").warn("%s starts or stops what no lock guards, so two nodes may run it at once: "+
				"write its own command among processes", quoted(hook.Command[0]))
		}
		if setsAddress.MatchString(strings.Join(hook.Command, " ")) {
			at.key("command").warn("another node may start the service while the address is still set here: write address: for it, " +
				"which is removed before that")
		}
		switch {
		case len(hook.Command) > 0:
			checkPositive(at.key("timeout"), hook.Timeout)
		case at.given():
			at.noEffect("a command", "command:")
		}
	}
}

// check makes sure that the other nodes can be asked for promises, and have enough time to answer.
func (on OnLoss) check(p place) {
	const shortest, longest = time.Second, 5 * time.Minute
	checkChoice(p, on)
	if on != OnLossFailsafe {
		return
	}
	if !p.asks {
		p.and(p.top("fencing", "agent")).fault(
			"failsafe asks the other nodes through their fencing agents: set fencing.agent, here and on all nodes")
	}
	both := p.and(p.top("zookeeper", "lease"))
	if t := p.node.ZooKeeper.Lease; t > 0 && t < shortest {
		both.fault("with a lease of %v the other nodes would have %v to answer, between the first doubt about ZooKeeper and the time to "+
			"stop: failsafe needs a lease of %v or more", t, (t * 3 / 10).Round(time.Millisecond), shortest)
	} else if t > longest {
		both.fault("with a lease of %v the other nodes would have to agree not to start the service for as long: "+
			"failsafe needs one of %v or less", t, longest)
	}
}
