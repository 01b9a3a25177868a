package config

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/ocf"
)

// member is the key that makes it a member which is no program; "": it is one.
func (process Process) member() string {
	switch {
	case process.Address != nil:
		return "address"
	case process.Mount != nil:
		return "mount"
	case process.OCF != "":
		return "ocf"
	}
	return ""
}

// memberKeys are the keys that a member has which is no program.
func (process Process) memberKeys() []string {
	keys := []string{"name", "needs_proof", process.member()}
	if process.Address == nil {
		keys = append(keys, "undo_timeout", "ready")
	}
	if process.OCF != "" {
		keys = append(keys, "params", "survives_boot")
	}
	return keys
}

// tidyMember leaves only what counts of a member that is no program.
func (process *Process) tidyMember() {
	if process.Address != nil {
		*process = Process{Name: process.Name, Address: process.Address, NeedsProof: process.NeedsProof}
		return
	}
	*process = Process{
		Name: process.Name, OCF: process.OCF, Mount: process.Mount, Params: maps.Clone(process.Params), NeedsProof: process.NeedsProof,
		SurvivesBoot: process.SurvivesBoot, UndoTimeout: process.UndoTimeout,
		Program: Program{Ready: Ready{Timeout: process.Ready.Timeout}},
	}
	if len(process.Params) == 0 {
		process.Params = nil
	}
}

// checkMember checks a member that is no program.
func (process Process) checkMember(p place) {
	what, goes := process.member(), append(process.memberKeys(), "command", "address", "mount", "ocf") // of these four one is given
	switch what {
	case "address":
		process.Address.check(p.key(what))
	case "mount":
		process.Mount.check(p.key(what))
		process.checkTimes(p, "the table of mounts says when it is mounted")
	case "ocf":
		process.checkOCF(p)
		process.checkTimes(p, "the agent's start and monitor actions say when it is ready")
		process.checkSurvival(p)
	}
	for _, f := range fieldsOf(reflect.TypeFor[Process]()) {
		if at := p.key(f.name); !slices.Contains(goes, f.name) && at.given() {
			at.fault("does not go with %s", what)
		}
	}
}

func (process Process) checkOCF(p place) {
	if fault := ocf.NameFault(process.OCF); fault != "" {
		p.key("ocf").fault("%s", fault)
	}
	checkEnv(p.key("params"), process.Params)
}

func (process Process) checkTimes(p place, instead string) {
	if timeout := p.key("undo_timeout"); timeout.given() {
		checkPositive(timeout, process.UndoTimeout)
	}
	if way := process.Ready.Way(); way != "" {
		p.key("ready").key(way).fault("does not go with %s: %s; only timeout may be given", process.member(), instead)
	}
	checkNotNegative(p.key("ready").key("timeout"), process.Ready.Timeout)
}

// withAddresses are the members of a service with its addresses before them; of one that runs on every node, behind its first program,
// which has none until it is promoted.
func (s Service) withAddresses() []Process {
	var all []Process
	for _, a := range s.Address {
		all = append(all, Process{Name: a.IP.Addr(), Address: &a})
	}
	if s.Replicated != nil {
		return slices.Concat(s.Processes[:1], all, s.Processes[1:])
	}
	return append(all, s.Processes...)
}

// Copy is what of a replicated service runs on every node: its program.
func (s Service) Copy() Service {
	s.Processes, s.Hooks, s.Health = s.Processes[:1], Hooks{}, s.Health.follower()
	return s
}

// Checked is the program that the service's checks are about, and whose user runs them.
func (s Service) Checked() Process {
	if s.Replicated != nil {
		return s.Processes[0]
	}
	return s.Processes[len(s.Processes)-1]
}

// How long the commands for addresses may take. Setting one waits for a machine that is about to remove it.
const (
	setWithin    = 10 * time.Second
	removeWithin = 2 * time.Second // a node that has no proof waits for it; what is killed too soon is tried again
	stopWithin   = 5 * time.Second
)

// A resource agent that does not say how long an action may take gets what Pacemaker gives it.
const agentDefault = 20 * time.Second

// Members is the service with programs in place of its addresses, mounts and OCF resources. Each becomes a oneshot, whose undo is noted
// before it can have an effect, and a program that watches it, so that the service fails with it. name is the service's, self whoever runs
// a command of it: a note of how to undo one may be of another version. meta is asked for what an agent says of itself; what it does not
// know has defaults.
func (s Service) Members(name, self string, meta func(ocf.Resource) ocf.Meta) Service {
	var all []Process
	for _, process := range s.Processes {
		switch {
		case process.Address != nil:
			all = process.addAddress(all, self)
		case process.Mount != nil:
			all = append(all, process.mountMembers(self, len(all) == 0)...)
		case process.OCF != "":
			all = append(all, process.agentMembers(name, self, meta, len(all) == 0)...)
		default:
			all = append(all, process)
		}
	}
	s.Processes = all
	return s
}

// Groups are the processes of Members in the order in which they start, each group once the one before it is ready. Addresses that follow
// one another are set at the same time: for each the network is asked who has it, and given time to answer.
func (s Service) Groups() (groups [][]Process) {
	for rest := s.Processes; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[0].Sets != nil && rest[n].Sets != nil {
			n++
		}
		groups, rest = append(groups, rest[:n]), rest[n:]
	}
	return groups
}

// AnnounceSignal has the keeper of an address announce it again.
const AnnounceSignal = unix.SIGUSR1

// What a program of Members exits with if this host cannot do what it is asked for, and another one may.
const (
	ExitUnfit   = 69
	ExitNothing = 68 // and nothing was done
)

// member is a program of this binary.
func member(name string, command Command, ready Ready) Process {
	process := Process{Name: name, Program: writtenDefaults().Program}
	process.Command, process.Ready, process.StopTimeout, process.Member = command, ready, stopWithin, true
	process.tidy()
	return process
}

// does is what a member does to this machine, which undo undoes.
func (process Process) does(command, undo, undone Command, within, undoWithin time.Duration) Process {
	effect := member(process.Name, command, Ready{Notify: true, Timeout: within}) // it says why it fails
	effect.Oneshot, effect.NeedsProof, effect.SurvivesBoot = true, process.NeedsProof, process.SurvivesBoot
	effect.Undo, effect.Undone, effect.UndoTimeout = undo, undone, undoWithin
	return effect
}

// addAddress adds what sets an address, before the one that keeps those that follow one another.
func (process Process) addAddress(all []Process, self string) []Process {
	a := process.Address
	words := Command{"--device", a.Device, "--ip", string(a.IP)}
	sets := process.does(append(Command{self, "address", "up"}, words...),
		append(Command{self, "address", "down"}, words...), nil, setWithin, removeWithin)
	sets.Sets = a
	words = append(Command{"--announce", a.Announce.String()}, words...)
	if last := len(all) - 1; last >= 0 && all[last].Keeps {
		all[last].Command = append(all[last].Command, words...)
		return slices.Insert(all, last, sets)
	}
	keeps := member(process.Name+"-keeper", append(Command{self, "address", "keep"}, words...), Ready{Notify: true, Timeout: setWithin})
	keeps.Keeps = true
	return append(all, sets, keeps)
}

// agentMembers has validate-all asked of the first member only: what another one needs may be there only once those before it have started.
func (process Process) agentMembers(service, self string, meta func(ocf.Resource) ocf.Meta, first bool) []Process {
	r := ocf.Resource{Agent: process.OCF, Name: ocf.Instance(service, process.Name)}
	m := meta(r)
	timeout := func(given time.Duration, action string) time.Duration {
		for _, d := range []time.Duration{given, m.Action(action).Timeout} {
			if d > 0 {
				return d
			}
		}
		return agentDefault
	}
	command := func(word string, flags ...string) Command {
		words := append(Command{self, "ocf", word, "--name", r.Name}, flags...)
		words = append(words, "--", process.OCF)
		for _, param := range slices.Sorted(maps.Keys(process.Params)) {
			words = append(words, param+"="+process.Params[param])
		}
		return words
	}
	start, stop, monitor := timeout(process.Ready.Timeout, "start"), timeout(process.UndoTimeout, "stop"), timeout(0, "monitor")
	look := []string{"--timeout", monitor.String()}
	watch := slices.Clone(look)
	if interval := m.Action("monitor").Interval; interval > 0 {
		watch = append(watch, "--interval", interval.String())
	}
	watches := member(process.Name+"-monitor", command("watch", watch...), Ready{Notify: true, Timeout: monitor})
	watches.Probe = command("probe", look...)
	if first {
		watches.Probe = command("probe", append(look, "--validate")...)
	}
	return []Process{
		process.does(command("start", "--timeout", start.String()), command("stop", "--timeout", stop.String()),
			command("stopped", look...), start, stop),
		watches,
	}
}
