package config

import (
	"os"
	"slices"
	"strings"
	"time"
)

// SeenBy is how the nodes whose copies follow look at the primary from outside: one of the ways is given.
type SeenBy struct {
	Exec     Command       `yaml:"exec,flow,omitempty" oneof:"way" doc:"The primary is well while the command ends with success. It runs as follow does."`
	HTTP     string        `yaml:"http,omitempty" oneof:"way" doc:"The primary is well while a GET of the URL, as with tcp, is answered with a status from 200 to 399."`
	TCP      string        `yaml:"tcp,omitempty" oneof:"way" doc:"The primary is well while host:port accepts a connection. $UNDERSTUDY_ACTIVE_ADDRESS, _PORT, _HOST and _NODE stand for the primary's."`
	Interval time.Duration `yaml:"interval" doc:"How long from the start of one look to the start of the next."`
	Timeout  time.Duration `yaml:"timeout" doc:"How long a look may take before it has failed."`
	Failures int           `yaml:"failures" doc:"How many failures in a row make a node report that the primary is not reachable."`
	Quorum   Quorum        `yaml:"quorum" doc:"How many of the nodes that can report have to report it before another copy is promoted."`
}

// Quorum says how many nodes have to agree.
type Quorum string

// The quorums.
const (
	QuorumMajority Quorum = "majority"
	QuorumAll      Quorum = "all"
	QuorumAny      Quorum = "any"
)

func (Quorum) choices() []string { return words(QuorumMajority, QuorumAll, QuorumAny) }

func (s *SeenBy) setDefaults() {
	s.Interval, s.Timeout, s.Failures, s.Quorum = 5*time.Second, 2*time.Second, 3, QuorumMajority
}

// seen are the variables that stand for the primary.
var seen = []string{"UNDERSTUDY_ACTIVE_ADDRESS", "UNDERSTUDY_ACTIVE_PORT", "UNDERSTUDY_ACTIVE_HOST", "UNDERSTUDY_ACTIVE_NODE"}

func (s *SeenBy) check(p place) {
	if s == nil {
		return
	}
	s.Exec.checkGiven(p.key("exec"))
	switch {
	case s.TCP != "":
		checkAddress(p.key("tcp"), fillSample(p.key("tcp"), s.TCP))
	case s.HTTP != "":
		checkURL(p.key("http"), fillSample(p.key("http"), s.HTTP))
	case len(s.Exec) == 0 && !p.key("exec").given():
		p.fault("does not say how to look: add tcp:, http: or exec:")
	}
	checkPositive(p.key("interval"), s.Interval)
	checkPositive(p.key("timeout"), s.Timeout)
	checkBetween(p.key("failures"), s.Failures, 1, mostFailures)
	checkChoice(p.key("quorum"), s.Quorum)
}

// fillSample fills in a primary, and reports what stands for none.
func fillSample(p place, text string) string {
	filled := false
	text = Fill(text, func(name string) string {
		if name == "UNDERSTUDY_ACTIVE_PORT" {
			return "1"
		}
		filled = true
		if !slices.Contains(seen, name) {
			p.fault("%s is not known here: write one of %s", quoted("$"+name), oneOf(seen))
		}
		return "primary"
	})
	if !filled {
		p.fault("names the same place for each primary: write $UNDERSTUDY_ACTIVE_ADDRESS where its address belongs")
	}
	return text
}

// Fill fills in variables, and gives an IPv6 address the brackets that it needs before a port.
func Fill(text string, value func(name string) string) string {
	filled := os.Expand(text, func(name string) string {
		v := value(name)
		if strings.Contains(v, ":") {
			return "[" + v + "]"
		}
		return v
	})
	return strings.NewReplacer("[[", "[", "]]", "]").Replace(filled)
}
