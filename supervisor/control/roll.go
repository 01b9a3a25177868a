package control

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/election"
	"understudy/supervisor/wait"
)

// Roll is a command that runs on one node after the other. ZooKeeper keeps how far it has come, until it is finished.
type Roll struct {
	Command string   `json:"command"`
	Done    []string `json:"done"` // nodes
}

// rolls begins the reason of a drain that a roll has ordered.
const rolls = "roll: "

// BeginRoll goes on with the roll of this command, if it was broken off, or begins one. Another command's has to be finished before, or is
// given up with anew.
func (c *Cluster) BeginRoll(ctx context.Context, command, by string, anew bool) (*Roll, error) {
	switch ours, owner, err := c.own(ctx, election.Rolling(c.root), by); {
	case err != nil:
		return nil, err
	case owner == "":
		return nil, refused("nothing of Understudy is below %s: is --root right?", c.root)
	case !ours:
		return nil, refused("a roll is under way, by %s (after kill -9, for a moment more)", owner)
	}
	z, err := c.read(ctx, election.Rolled(c.root))
	if err != nil {
		return nil, err
	}
	var r Roll
	if z.exists && json.Unmarshal(z.data, &r) == nil && !anew {
		if r.Command != command {
			return nil, refused("the roll of `%s` is not finished (done: %s): the same command goes on with it, --anew begins this one",
				r.Command, cmp.Or(strings.Join(r.Done, ", "), "none"))
		}
		return &r, nil
	}
	r = Roll{Command: command}
	return &r, c.keepRoll(ctx, r)
}

func (c *Cluster) keepRoll(ctx context.Context, r Roll) error {
	p := election.Rolled(c.root)
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = insist(ctx, "write "+p, func() (any, error) {
		_, err := c.conn.Create(p, data, 0, c.acl)
		if errors.Is(err, zk.ErrNodeExists) {
			_, err = c.conn.Set(p, data, -1)
		}
		return nil, err
	})
	return err
}

// EndRoll forgets a roll that is finished.
func (c *Cluster) EndRoll(ctx context.Context) error {
	_, err := c.remove(ctx, election.Rolled(c.root))
	return err
}

// Next is the node that a roll has to take next, and its host: where it was broken off, else one with the fewest active services. Others,
// which are drained by somebody else, or gone, are left out.
func (r *Roll) Next(s Status) (node, host string, others []string) {
	hosts, least := map[string]string{}, 0
	for _, n := range s.Nodes {
		hosts[n.Node] = n.Host
	}
	for _, g := range s.Gone {
		hosts[g.Node] = g.Host
	}
	broken := ""
	for _, d := range s.Drained {
		switch {
		case slices.Contains(r.Done, d.Node):
		case strings.HasPrefix(d.Why, rolls):
			broken = d.Node
		default:
			others = append(others, d.Node+" is "+d.Words)
		}
	}
	for _, g := range s.Gone {
		if !slices.Contains(r.Done, g.Node) && g.Node != broken && s.drained(g.Node) == nil {
			others = append(others, g.Node+" is gone")
		}
	}
	for _, n := range s.Nodes {
		active := len(s.on(n.Node))
		if broken == "" && !slices.Contains(r.Done, n.Node) && s.drained(n.Node) == nil && (node == "" || active < least) {
			node, least = n.Node, active
		}
	}
	node = cmp.Or(broken, node)
	return node, hosts[node], others
}

// Settling is for how long a node has to be well after a command: one that reboots it returns at once.
const Settling = 10 * time.Second

// Step drains a node, has do work there, waits until the node is well, and lets it take services again. If it fails after that order, the
// node stays drained.
func (c *Cluster) Step(ctx context.Context, r *Roll, node, by string, do func(context.Context) error) (drained bool, err error) {
	s, err := c.Status(ctx)
	if err != nil {
		return false, err
	}
	had := s.part(node)
	_, leaving, err := c.Drain(ctx, Draining{Node: node, By: by, Why: rolls + r.Command, Roll: true})
	if err != nil {
		return s.drained(node) != nil, err
	}
	if _, err := c.Empty(ctx, node, leaving); err != nil {
		return true, err
	}
	if err := do(ctx); err != nil {
		return true, err
	}
	unwell := func(s Status) (why string, over error) {
		if s.drained(node) == nil {
			return "", refused("somebody has undrained %s", node)
		}
		if !s.Connected(node) {
			return node + " is not connected", nil
		}
		for _, name := range had {
			if m := member(s.service(name), node); !waits(m) {
				return fmt.Sprintf("%s is %s for %s", node, cmp.Or(m.Role, election.RoleOffline), name), nil
			}
		}
		return "", nil
	}
	if err := c.await(ctx, Settling, unwell); err != nil {
		return true, err
	}
	if _, err := c.Undrain(ctx, node, by); err != nil {
		return true, err
	}
	if err := c.await(ctx, 0, func(s Status) (string, error) {
		for _, name := range had {
			if v := s.service(name); v.Active != node && !fit(member(v, node)) {
				return fmt.Sprintf("%s does not stand by for %s%s", node, name, because(member(v, node))), nil
			}
		}
		return "", nil
	}); err != nil {
		return false, err
	}
	r.Done = append(r.Done, node)
	return false, c.keepRoll(ctx, *r)
}

// part is the services for which a node stands by, or which are active there. One that is drained already has those that it waits for.
func (s Status) part(node string) (services []string) {
	for _, v := range s.Services {
		if m := member(v, node); v.Active == node || fit(m) || m.Drained != nil && waits(m) && !m.Never {
			services = append(services, v.Service)
		}
	}
	return services
}

// await waits until nothing has been wrong for some time.
func (c *Cluster) await(ctx context.Context, long time.Duration, unwell func(Status) (why string, over error)) error {
	since, last := time.Now(), "ZooKeeper has not answered"
	for {
		s, err := c.Status(ctx)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if err == nil {
			why, over := unwell(s)
			if over != nil {
				return over
			}
			if why != "" {
				since, last = time.Now(), why
			} else if time.Since(since) >= long {
				return nil
			} else {
				last = fmt.Sprintf("it has not stayed well for %v", long)
			}
		}
		if !wait.For(ctx, departing) {
			return late(context.Cause(ctx), last)
		}
	}
}
