package control

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"understudy/election"
)

// GoneNode is a node that is known, and not connected.
type GoneNode struct {
	Node     string     `json:"node"`
	Host     string     `json:"host"`
	Seen     *time.Time `json:"last_seen"` // by ZooKeeper's clock, up to election.KnownEvery before its end
	Services []string   `json:"services"`  // that it could run
	Bare     int        `json:"without_standby"`

	Stopped bool `json:"stopped,omitempty"` // by an operator, and not lost

	held bool // its program may still run: it cannot be forgotten
}

func parseGone(name string, z znode) GoneNode {
	k := election.ReadKnown(z.data)
	return GoneNode{Node: name, Host: k.Host, Seen: when(time.UnixMilli(z.stat.Mtime).UTC()), Services: append([]string{}, k.Services...),
		Stopped: k.Stopped}
}

// miss keeps those of the known nodes that are not connected and that could run one of the services asked for, and tells these services of
// them.
func (s *Status) miss(known []GoneNode, asked bool) {
	for _, g := range known {
		could := false
		for i := range s.Services {
			v := &s.Services[i]
			g.held = g.held || v.Fencing != nil && v.Fencing.Node == g.Node
			if !slices.Contains(g.Services, v.Service) || s.Connected(g.Node) {
				continue
			}
			could = true
			v.Gone = append(v.Gone, g.Node)
			if g.Stopped {
				v.Halted++
			}
			if v.bare() {
				g.Bare++
			}
		}
		if !s.Connected(g.Node) && (could || !asked) {
			s.Gone = append(s.Gone, g)
		}
	}
}

// bare reports whether no node could take the service although it is to be taken.
func (s ServiceStatus) bare() bool { return !s.Paused && !s.HasStandby() }

// Words say what is missing.
func (g GoneNode) Words(now time.Time) string {
	words := g.Node + " is gone"
	if g.Seen != nil {
		words += map[bool]string{true: ", stopped", false: ", last seen"}[g.Stopped] + agoWords(g.Seen, now)
	}
	switch g.Bare {
	case 0:
		return words + "."
	case 1:
		return words + ": 1 service has no standby."
	}
	return fmt.Sprintf("%s: %d services have no standby.", words, g.Bare)
}

// areGone says of the nodes that they are, or that nothing is wrong with them.
func (s ServiceStatus) areGone() string {
	be, how := "are", "gone"
	if len(s.Gone) == 1 {
		be = "is"
	}
	if s.Halted == len(s.Gone) {
		how = "stopped"
	}
	return strings.Join(s.Gone, ", ") + " " + be + " " + how
}

// Forget is the command that takes it off the lists; empty: that is refused, or a client has chosen its name.
func (g GoneNode) Forget() Remedy {
	if g.held {
		return Remedy{}
	}
	return remedy("understudy forget", "", g.Node)
}
