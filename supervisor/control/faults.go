package control

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"understudy/election"
)

// Fault is what is wrong with a service in words for people, and what mends it.
type Fault struct {
	Level string  `json:"level"`
	Node  string  `json:"node"` // the node that it is about; empty: the service
	What  string  `json:"what"`
	Hint  string  `json:"hint"` // when, or where, to do it
	Do    Command `json:"do"`   // empty: there is none
}

// Command lacks only the flags that say which cluster.
type Command struct {
	Words []string // the command and its arguments, each flag with its value
	Wraps string   // what it wraps; empty: it wraps nothing
	Here  bool     // it takes no such flags
}

func (c Command) String() string {
	text := strings.Join(c.Words, " ")
	if c.Wraps != "" {
		text += " -- " + c.Wraps
	}
	return text
}

// MarshalText is String.
func (c Command) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

func command(words ...string) Command { return Command{Words: words} }

// Levels of faults.
const (
	Grave   = "fault"   // it does not run as it should
	Warning = "warning" // it does, but would not survive the next failure, or is kept from it on purpose
)

// safe is a command that can be copied to a shell even if a stranger wrote the names in it to ZooKeeper.
var safe = regexp.MustCompile(`^[A-Za-z0-9 ._@:/-]*$`)

// Faults tells what is wrong with a service.
func Faults(v Service) []Fault {
	faults := faultsOf(v)
	for i := range faults {
		if f := &faults[i]; !safe.MatchString(f.Do.String()) {
			f.Hint, f.Do = "", Command{}
		}
	}
	return faults
}

func faultsOf(v Service) []Fault {
	faults := []Fault{}
	for _, m := range v.Members {
		if f, ok := unwell(v, m); ok {
			faults = append(faults, f)
		}
	}
	for _, k := range v.Kept {
		faults = append(faults, k.fault())
	}
	if h := v.Handing; h != nil {
		faults = append(faults, Fault{
			Level: Warning, What: fmt.Sprintf("%s has ordered that %s give it to %s.", h.By, h.From, cmp.Or(h.To, "the first node that can")),
		})
	}
	able := slices.ContainsFunc(v.Members, func(m Member) bool {
		return m.Node != v.Active && m.Role == election.RoleStandby && m.Health == election.HealthOK
	})
	switch {
	case v.Stray != "":
		return append(faults, Fault{Level: Grave, What: "The lock belongs to no session: it was made by hand, and nobody will ever give it back. Delete " + v.Stray + "."})
	case v.Fencing != nil:
		return append(faults, unfenced(v))
	case v.Paused && v.Active == "":
		return append(faults, Fault{Level: Grave, What: "Nobody is active, and nobody will be: " + v.Order + ".", Hint: "To end that:", Do: command("understudy resume", v.Service)})
	case v.Paused:
		return append(faults, Fault{Level: Warning, What: "Nobody is promoted: " + v.Order + ".", Hint: "To end that:", Do: command("understudy resume", v.Service)})
	case v.Lock != "" && v.Active == "": // in a moment
	case v.Active == "" && able:
		return append(faults, Fault{Level: Warning, What: "Nobody is active yet: a standby is about to take it."})
	case v.Active == "" && len(v.Members) > 0:
		return append(faults, Fault{Level: Grave, What: "Nobody is active, and none of its nodes can be."})
	case v.Active == "":
		return append(faults, Fault{Level: Warning, What: "No node has it: it was removed, or all its supervisors are stopped."})
	case !able && len(v.Members) > 1:
		return append(faults, Fault{Level: Warning, What: fmt.Sprintf("No standby: a failure of %s would stop it. None of the other nodes can take it now.", v.Active)})
	case !able:
		return append(faults, Fault{
			Level: Warning, What: fmt.Sprintf("No standby: a failure of %s would stop it.", v.Active), Hint: "Run it on another node too:",
			Do: Command{Words: []string{"understudy run", "--service " + v.Service, "--node NODE"}, Wraps: "COMMAND"},
		})
	}
	return faults
}

// unwell tells what is wrong with one node's part.
func unwell(v Service, m Member) (Fault, bool) {
	why := because(m)
	f := Fault{Level: Grave, Node: m.Node}
	switch {
	case m.Role == election.RoleFailed && v.Fencing != nil: // that has to be mended first
		f.What = m.Node + " has given up" + why + "."
	case m.Role == election.RoleFailed:
		f.What = m.Node + " has given up" + why + ". It backs off, and tries again later."
		f.Hint, f.Do = output(v, m)
	case m.Health == election.HealthFailing:
		f.What = m.Node + " is unwell" + why + "."
		f.Hint, f.Do = output(v, m)
	case m.Health == election.HealthUnfit && !m.Never:
		f.Level, f.What = Warning, m.Node+" is no candidate"+why+"."
	default:
		return f, false
	}
	return f, true
}

// output tells where to find the output of a node's programs.
func output(v Service, m Member) (hint string, do Command) {
	if m.Logs {
		return "Its output, on " + m.Node + ":", Command{Words: []string{"understudy logs", v.Service}, Here: true}
	}
	return "Its output is where the supervisor's own is, on " + m.Node + ".", Command{}
}

// unfenced tells that a child may be running whose node is not active.
func unfenced(v Service) Fault {
	f := v.Fencing
	fault := Fault{Level: Grave, Hint: "If you know that its child is dead:", Do: command("understudy fence confirm", v.Service, "--node "+f.Node)}
	switch {
	case f.Node == "":
		return Fault{Level: Grave, What: "The breadcrumb of the former active cannot be read."}
	case f.By != "":
		fault.What = fmt.Sprintf("Fencing %s: %s holds the lock and starts nothing while the child of %s may be running.", f.Node, f.By, f.Node)
	case len(v.Members) > 0:
		fault.What = fmt.Sprintf("Nobody is active: the child of %s may be running, and nobody holds the lock.", f.Node)
	default:
		return Fault{Level: Warning, What: fmt.Sprintf("%s was active last, and its child may be running: the next active node fences it first.", f.Node)}
	}
	return fault
}
