package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"understudy/election"
)

// Gone is a node that was active lately, and is not connected now.
type Gone struct {
	Node   string          `json:"node"`
	Since  *time.Time      `json:"since"`  // the end of its activation; nil: it is not known
	Reason election.Reason `json:"reason"` // why that ended
}

// searchedActivations is in how many activations a node that is gone is looked for.
const searchedActivations = 4

// gone finds the nodes that are missed where no node is active, or none stands by.
func (c *Cluster) gone(ctx context.Context, v *ServiceStatus, nodes []NodeStatus) error {
	if v.Active != "" && v.standby() {
		return nil
	}
	p := election.Paths{Root: c.root, Service: v.Service}
	names, err := c.children(ctx, p.History())
	if err != nil {
		return err
	}
	slices.Sort(names)
	slices.Reverse(names)
	for _, name := range names[:min(len(names), searchedActivations)] {
		n, err := c.read(ctx, p.History()+"/"+name)
		if err != nil {
			return err
		}
		a := parseActivation(n.data)
		here := slices.ContainsFunc(nodes, func(n NodeStatus) bool { return n.Node == a.Node })
		if !n.exists || a.Node == "" || here || v.Involves(a.Node) && v.Fencing == nil ||
			slices.ContainsFunc(v.Gone, func(g Gone) bool { return g.Node == a.Node }) {
			continue
		}
		v.Gone = append(v.Gone, Gone{a.Node, a.End, a.Reason})
	}
	return nil
}

func (g Gone) problem(now time.Time) Problem {
	what := g.Node + " was active, and is not connected any more"
	if g.Since != nil {
		what = fmt.Sprintf("%s was active until%s, and is not connected now", g.Node, agoWords(g.Since, now))
	}
	if g.Reason != "" {
		what += " (" + plain.Replace(string(g.Reason)) + ")"
	}
	return Problem{Level: Warning, What: what + "."}
}
