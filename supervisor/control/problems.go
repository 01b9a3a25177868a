package control

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"understudy/election"
)

// Problem is what is wrong with a service in words for people, and what mends it.
type Problem struct {
	Level string `json:"level"`
	Node  string `json:"node"` // the node that it is about; empty: the service
	What  string `json:"what"`
	Hint  string `json:"hint"` // when, or where, to do it
	Do    Remedy `json:"do"`   // empty: there is none
}

// Remedy is a command that ends a problem. It lacks only the flags that say which cluster.
type Remedy struct {
	Words []string // the command and its arguments, each flag with its value
	Wraps string   // what it wraps; empty: it wraps nothing
	Here  bool     // it takes no such flags
}

func (c Remedy) String() string {
	text := strings.Join(c.Words, " ")
	if c.Wraps != "" {
		text += " -- " + c.Wraps
	}
	return text
}

// MarshalText is String.
func (c Remedy) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// remedy is a command with flags, "" for none, each with a name that it takes. It is none where a name is not one that a config may have: a
// client wrote it to ZooKeeper, and a shell, or the command, would take it for more words or for flags.
func remedy(command string, flagsAndNames ...string) Remedy {
	do := Remedy{Words: []string{command}}
	for pair := range slices.Chunk(flagsAndNames, 2) {
		if !plainName.MatchString(pair[1]) {
			return Remedy{}
		}
		do.Words = append(do.Words, strings.TrimLeft(pair[0]+" "+pair[1], " "))
	}
	return do
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_@:/][A-Za-z0-9._@:/-]*$`)

// Levels of problems.
const (
	Fault   = "fault"   // it does not run as it should
	Warning = "warning" // it does, but would not survive the next failure, or is kept from it on purpose
)

// succeeded is how a program ends well.
const succeeded = "exit code 0"

// Problems tells what is wrong with a service, the worst first.
func Problems(v ServiceStatus, now time.Time) []Problem {
	problems := problemsOf(v, now)
	for i := range problems {
		if f := &problems[i]; len(f.Do.Words) == 0 {
			f.Hint = ""
		}
	}
	slices.SortStableFunc(problems, func(a, b Problem) int { return cmp.Compare(severity[a.Level], severity[b.Level]) })
	return problems
}

var severity = map[string]int{Fault: 0, Warning: 1}

func problemsOf(v ServiceStatus, now time.Time) []Problem {
	problems := append([]Problem{}, whole(v, now)...)
	for _, m := range v.Members {
		if f, ok := unwell(v, m, now); ok {
			problems = append(problems, f)
		}
	}
	for _, node := range slices.Sorted(maps.Keys(v.Told)) {
		if why := v.Told[node].Doubt; why != "" {
			problems = append(problems,
				Problem{Level: Warning, Node: node, What: fmt.Sprintf("The config of %s may lose data: %s.", node, why)})
		}
	}
	if h := v.Handing; h != nil {
		problems = append(problems, Problem{
			Level: Warning, What: fmt.Sprintf("%s has ordered a switchover from %s to %s.",
				h.By, h.From, cmp.Or(h.To, "the first node that can take it")),
		})
	}
	return problems
}

// whole tells what is wrong with the service as a whole. Each command is the least dangerous one that helps: a paused service is resumed
// before anybody confirms a death, because the next active node may be able to prove it.
func whole(v ServiceStatus, now time.Time) (problems []Problem) {
	add := func(level, what, hint string, do Remedy) {
		problems = append(problems, Problem{Level: level, What: what, Hint: hint, Do: do})
	}
	resume := remedy("understudy resume", "", v.Service)
	able := v.HasStandby()
	at, unpromoted := v.unpromoted()
	if v.Stray != "" {
		add(Fault, "DOWN: the lock belongs to no session, so no node can take it. It was made by hand. Delete "+v.Stray+".", "", Remedy{})
	}
	switch {
	case v.Stopped && v.Active == "":
		hint := "To start it:"
		if v.Before != "" {
			hint = "It was " + v.Before + ". To start it, and pause it again:"
		}
		add(Warning, "No node runs it, because it is "+v.Order+".", hint, remedy("understudy start", "", v.Service))
	case v.Stopped:
		add(Warning, "It is to stop, and has not stopped yet ("+v.Order+").", "", Remedy{})
	case v.Paused && v.Active == "":
		add(Fault, "DOWN: automatic takeovers are off ("+v.Order+"), so no node starts it.", "To turn them on again:", resume)
	case v.Paused:
		add(Warning, "Automatic takeovers are off ("+v.Order+").", "To turn them on again:", resume)
	}
	switch {
	case v.Stray != "":
	case v.Fencing != nil && (v.Fencing.By != "" || v.Paused || unpromoted == ""): // else the next active node may be able to prove it
		problems = append(problems, unfenced(v, now))
	case v.Active == "" && (v.Paused || v.Lock != ""): // said, or a matter of a moment
	case v.Active == "" && able && unpromoted != "":
		hint, do, level := "", Remedy{}, Warning
		if v.Fencing != nil { // it ran before
			level = Fault
		}
		if v.First {
			hint = "Remove that reason. If that cannot be, choose the copy to begin with:"
			if strings.Contains(unpromoted, NothingReported) {
				hint = "Start the nodes that are missing. If they are lost, choose the copy to begin with:"
			}
			do = remedy("understudy switchover", "", v.Service, "--to", "NODE")
			if len(do.Words) > 0 {
				do.Words = append(do.Words, "--first")
			}
		}
		add(level, fmt.Sprintf("No node is active yet, because no copy is promoted. The reason on %s is: %s.", at, unpromoted), hint, do)
	case v.Active == "" && able:
		add(Warning, "No node is active yet. A standby is about to take it.", "", Remedy{})
	case v.Active == "" && len(v.Members) > 0:
		add(Fault, "DOWN: no node can run it now.", "", Remedy{})
	case v.Active == "" && v.Ran != nil:
		if v.Ran.Exit != "" && v.Ran.Exit != succeeded {
			add(Fault, v.Ran.Node+" ran it once, and it failed: "+v.Ran.Exit+".", "To remove it from this list:",
				remedy("understudy forget", "", v.Service))
		}
	case v.Active == "":
		add(Fault, "DOWN: no supervisor that has this service in its config is connected.",
			"On its hosts, systemctl status understudy shows whether it runs, and why not. If no config has the service any more:",
			remedy("understudy forget", "", v.Service))
	case !able && !v.Paused && len(v.Gone) > 0:
		add(Warning, fmt.Sprintf("No standby: a failure of %s would stop it. %s.", v.Active, v.areGone()), "", Remedy{})
	case !able && !v.Paused && len(v.Members) > 1:
		add(Warning, fmt.Sprintf("No standby: a failure of %s would stop it. None of the other nodes can take it now.", v.Active),
			"", Remedy{})
	case !able && !v.Paused && v.FromFile:
		add(Warning,
			fmt.Sprintf("No standby: a failure of %s would stop it. Start understudy on another host with the same config.", v.Active),
			"", Remedy{})
	case !able && !v.Paused:
		do := remedy("understudy run", "--service", v.Service, "--node", "NODE")
		do.Wraps = "COMMAND"
		add(Warning, fmt.Sprintf("No standby: a failure of %s would stop it.", v.Active), "Run it on another node too:", do)
	}
	if others := v.notFollowing(); len(others) > 0 {
		add(Warning, fmt.Sprintf("Writes to %s wait until a copy has them, and no copy in the live set follows it (%s).",
			v.Active, strings.Join(others, ", ")), "", Remedy{})
	}
	return problems
}

// unwell tells what is wrong with one node's part.
func unwell(v ServiceStatus, m MemberStatus, now time.Time) (Problem, bool) {
	f := Problem{Level: Fault, Node: m.Node}
	switch {
	case m.Role == election.RoleFailed:
		f.What = m.Node + " failed here" + agoWords(m.Since, now) + because(m) + "."
		switch {
		case m.Retry != nil && m.Retry.After(now):
			f.What += fmt.Sprintf(" It tries again in %v.", m.Retry.Sub(now).Round(time.Second))
		default:
			f.What += " It tries again later."
		}
		if m.Cause == election.ChildDone {
			f.What += " A program that should keep running must stay in the foreground."
		}
		if v.Fencing == nil {
			f.Hint, f.Do = output(v, m)
		}
	case m.Health == election.HealthFailing:
		f.What = m.Node + " is unhealthy" + because(m) + "."
		f.Hint, f.Do = output(v, m)
	case m.Unlogged != "":
		f.What = m.Node + " runs the program, but its output is lost: " + m.Unlogged + "."
	case m.Drained != nil:
		f.Level, f.What = Warning, m.Node+" is "+m.Drained.Words+"."
	case m.Health == election.HealthUnfit && !m.Never:
		f.Level, f.What = Warning, m.Node+" cannot take it"+because(m)+"."
	case m.Restarts > 0 && m.Exited != nil && now.Sub(*m.Exited) < lately:
		f.Level = Warning
		f.What = fmt.Sprintf("On %s, the program was restarted %s%s, because: %s.",
			m.Node, times(m.Restarts), agoWords(m.Exited, now), strings.TrimPrefix(m.Exit, "the program ended: "))
		f.Hint, f.Do = output(v, m)
	default:
		return f, false
	}
	return f, true
}

// lately is how long a restart is worth a word.
const lately = 10 * time.Minute

func times(n int) string {
	if n == 1 {
		return "once,"
	}
	return fmt.Sprintf("%d times, the last time", n)
}

// agoWords tells how long ago something was.
func agoWords(t *time.Time, now time.Time) string {
	if t == nil {
		return ""
	}
	return fmt.Sprintf(" %v ago", max(now.Sub(*t), 0).Round(time.Second))
}

// output tells where to find the output of a node's programs.
func output(v ServiceStatus, m MemberStatus) (hint string, do Remedy) {
	hint, do = "Its output, on "+m.Node+":", remedy("understudy logs", "", v.Service)
	if !m.Logs {
		hint, do = "Its output is with the supervisor's own, on "+m.Node+". Under systemd:", remedy("journalctl", "-t", v.Service)
	}
	do.Here = true
	return hint, do
}

// shortTakeover is how long a takeover lasts that needs nobody: until a lease of profile wide and its grace delay are over.
const shortTakeover = 15 * time.Second

// unfenced tells that a program may be running whose node is not active.
func unfenced(v ServiceStatus, now time.Time) Problem {
	f := v.Fencing
	if f.Node == "" {
		return Problem{Level: Fault, What: "The record of the previous active node cannot be read."}
	}
	host := f.Node
	if f.Host != "" && f.Host != f.Node {
		host += " (host " + f.Host + ")"
	}
	problem := Problem{
		Level: Fault, Do: remedy("understudy fence confirm", "", v.Service, "--node", f.Node),
		Hint: f.check() + ". Then:",
	}
	last := host + " was active last, and its program may still run. The node that is active next makes sure first that it is dead."
	switch {
	case v.Paused:
		return Problem{Level: Warning, What: last}
	case f.By != "":
		problem.What = fmt.Sprintf("%s takes over from %s, and starts nothing before the program there is known to be dead.", f.By, host)
		if f.Since != nil && now.Sub(*f.Since) < shortTakeover { // nothing is to be done
			problem.Do = Remedy{}
		}
	case len(v.Members) > 0:
		problem.What = fmt.Sprintf("DOWN: the program may still run on %s, and no node has proved that it is dead.", host)
	default:
		return Problem{Level: Warning, What: last}
	}
	return problem
}
