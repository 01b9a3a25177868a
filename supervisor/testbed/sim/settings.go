package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"syscall"
	"time"

	"understudy/election"
	"understudy/fencing"
	"understudy/supervisor"
	"understudy/supervisor/config"
	"understudy/supervisor/service"
)

// What the helpers of a service are called, in place of the program's name.
const (
	mainProgram  = "program"
	sideProgram  = "side program"
	healthCheck  = "health"
	precheck     = "precheck"
	activeHook   = "on_active"
	helperLength = 20 * time.Millisecond // of their lives, at most
)

// settings is a service's config as its operator has it now. World.mu guards it.
type settings struct {
	edition  int             // another one takes a new start
	stop     time.Duration   // this does not
	priority []int           // by node
	gone     []bool          // by node: it is not in the config there
	order    []election.Mode // by node
}

func (w *world) newSettings() map[string]*settings {
	all := map[string]*settings{}
	for n, name := range w.plan.services() {
		s := &settings{stop: w.plan.StopTimeout, priority: slices.Clone(w.plan.Priority), gone: make([]bool, w.plan.Nodes), order: slices.Repeat([]election.Mode{w.plan.Order}, w.plan.Nodes)}
		if n > 0 {
			slices.Reverse(s.priority)
		}
		all[name] = s
	}
	return all
}

// outdates tells whether a main process has to end, since it was started with another command. World.mu is held.
func (s *settings) outdates(p *proc) bool { return p.argv[1] != strconv.Itoa(s.edition) }

// services is the config of a node. World.mu is held.
func (n *node) services(inc *incarnation) []service.Conf {
	p := n.w.plan
	all := []service.Conf{}
	for k, name := range p.services() {
		s := n.w.operator.settings[name]
		if s.gone[n.index] {
			continue
		}
		conf := service.Conf{Name: name, Service: config.Service{
			Election: config.Election(s.order[n.index]), Contain: config.ContainAuto, Priority: s.priority[n.index], Failback: p.Failback,
			Eligible: p.Ineligible != n.index, ReloadSignal: config.Signal(reloadSignal), OnLoss: config.OnLossStop,
			Restart: config.Restart{
				Policy: config.RestartOnFailure, Delay: 100 * time.Millisecond, MaxDelay: time.Second, GiveUpAfter: 3, Within: p.Timeout * 5,
				RejoinAfter: p.Rejoin,
			},
			Moves:      config.Moves{Max: p.Moves, Within: 10 * time.Minute},
			GraceDelay: p.grace(n.index), Fencing: config.Fencing{OnFailure: config.OnFailure(p.Fencing)},
		}}
		conf.Replicated = p.replicated()
		if p.outlasts(k, n.index) {
			conf.OnLoss = config.OnLossFailsafe
		}
		if p.Stonith {
			conf.Fence = []fencing.Step{{Method: stonith{inc}, Timeout: p.Timeout}}
			if p.Agents {
				conf.Fence = append([]fencing.Step{inc.asks()}, conf.Fence...)
			}
		}
		if p.Backoff > 0 {
			conf.Restart.Delay, conf.Restart.MaxDelay = p.Backoff, 4*p.Backoff
		}
		if p.Undo > 0 {
			conf.Processes = append(conf.Processes, config.Process{
				Name: effectProgram, Oneshot: true, Undo: config.Command{undoCommand}, UndoTimeout: p.Undo, NeedsProof: p.NeedsProof, SurvivesBoot: p.Survives,
				Program: config.Program{
					Command: []string{effectProgram, strconv.Itoa(s.edition)}, StopSignal: config.Signal(syscall.SIGTERM), StopTimeout: s.stop,
				},
			})
		}
		for k := range p.Programs {
			name := []string{mainProgram, sideProgram}[k]
			conf.Processes = append(conf.Processes, config.Process{Name: name, Program: config.Program{
				Command: []string{name, strconv.Itoa(s.edition)}, StopSignal: config.Signal(syscall.SIGTERM), StopTimeout: s.stop,
			}})
		}
		if p.Helpers {
			limit, failures := 4*helperLength, 2
			if p.Calm { // here the timers of a frozen supervisor go on: each freeze at a check is a failure of that
				failures = 4
			}
			conf.Health = config.HealthCheck{Exec: []string{healthCheck}, Interval: p.Timeout / 2, Timeout: limit, Failures: failures}
			conf.Precheck = config.Precheck{Exec: []string{precheck}, Interval: 2 * p.Timeout, Timeout: limit}
			conf.Hooks.OnActive = config.Hook{Command: []string{activeHook}, Timeout: limit}
		}
		p.warm(&conf.Service)
		if p.copied() { // all else is behind the copy's program
			slices.SortStableFunc(conf.Processes, func(a, b config.Process) int { return cmp.Compare(rank(a), rank(b)) })
		}
		all = append(all, conf)
	}
	return all
}

// rank is 0 for the program that is a copy where the service has copies.
func rank(one config.Process) int {
	if one.Name == mainProgram {
		return 0
	}
	return 1
}

// publish hands the config to the supervisors that run on some nodes. World.mu is held.
func (o *operator) publish(nodes ...*node) {
	for _, n := range nodes {
		if n.inc != nil {
			n.inc.tell(supervisor.Change{Services: n.services(n.inc)})
		}
	}
}

// tell hands a supervisor a changed config; of several that wait, the newest only.
func (i *incarnation) tell(c supervisor.Change) {
	for {
		select {
		case i.changes <- c:
			return
		case <-i.changes:
		}
	}
}

// reloadSignal is the one that programs are sent to read their config anew.
const reloadSignal = syscall.SIGHUP

// Ways of changing a config.
const (
	editCommand = iota
	editTimeout
	editPriorities
	editOrder
	editFault
	removeHere
	removeAll
	edits
)

var editNames = [...]string{"its command", "its stop timeout", "its priorities", "its kind of election", "in a way that is invalid", "by leaving it out", "by leaving it out everywhere"}

// reconfigure changes the config of a service. World.mu is held, as it is at the end.
func (o *operator) reconfigure(f Fault) (end func(), done bool) {
	name := o.plan.services()[f.N%o.plan.Services]
	s, n, how, where := o.settings[name], o.nodes[f.Node], f.Way, o.nodes
	switch how {
	case editCommand:
		s.edition++
	case editTimeout:
		s.stop = 1 + drawn(o.rng, o.plan.StopTimeout)
	case editPriorities:
		if o.plan.Priority[0] == 0 && o.plan.Priority[1] == 0 {
			return nil, false
		}
		s.priority = append(s.priority[1:len(s.priority):len(s.priority)], s.priority[0])
	case editOrder: // on this node first, or alone
		s.order[n.index] = map[election.Mode]election.Mode{election.Race: election.Queue, election.Queue: election.Race}[s.order[n.index]]
		where = []*node{n}
	case editFault:
		if n.inc == nil {
			return nil, false
		}
		n.inc.tell(supervisor.Change{Fault: "a line that nobody understands"})
		where = nil
	default:
		if slices.Contains(s.gone, true) {
			return nil, false
		}
		if how == removeHere {
			where = []*node{n}
		}
		for _, n := range where {
			s.gone[n.index] = true
		}
		end = func() {
			o.say("operator: puts %s into the config again", name)
			clear(s.gone)
			o.publish(o.nodes...)
		}
	}
	o.say("operator: changes the config of %s, %s", name, editNames[how])
	o.publish(where...)
	return end, true
}

func (f Fault) ailment() string {
	return fmt.Sprintf("%s of s%d", []string{healthCheck, precheck, activeHook}[f.N/4%3], f.N%2+1)
}
