package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/election"
	"understudy/supervisor/printable"
	"understudy/supervisor/wait"
)

// DrainedNode is a node that an operator keeps out of all services.
type DrainedNode struct {
	Node  string     `json:"node"`
	Since *time.Time `json:"since"`
	By    string     `json:"by"`
	Why   string     `json:"why"`
	Words string     `json:"-"` // all of it, with how long ago that was
}

func parseDrained(name string, z znode) DrainedNode {
	d := election.ReadDrained(z.data, z.stat)
	return DrainedNode{name, when(d.Since), d.By, d.Why, d.WordsAt(time.Now())}
}

// Undrain is the command that ends it; empty: a stranger has chosen its name.
func (d DrainedNode) Undrain() Remedy { return remedy("understudy undrain", "", d.Node) }

// Draining is a drain that was asked for.
type Draining struct {
	Node  string
	By    string
	Why   string
	Roll  bool // it is a roll's, which cannot be forced
	Force bool // although no other node can take a service that is active there, or nobody knows the node
}

// Departure is a service that was active on a node that is drained, and where it runs now.
type Departure struct {
	Service string `json:"service"`
	To      string `json:"to,omitempty"`    // empty: nowhere yet
	Stops   string `json:"stops,omitempty"` // why no other node can take it; empty: one can
	Stays   bool   `json:"stays,omitempty"` // it is paused
}

// Drain keeps a node out of all services from now on: it gives those away that it has. It tells which these are, and whether the node was
// not drained before.
func (c *Cluster) Drain(ctx context.Context, d Draining) (changed bool, leaving []Departure, err error) {
	s, err := c.Status(ctx)
	if err != nil {
		return false, nil, err
	}
	leaving = s.on(d.Node)
	if s.drained(d.Node) != nil {
		return false, leaving, nil
	}
	known := s.NodeNames()
	switch {
	case slices.Contains(known, d.Node):
	case d.Node == "" || strings.ContainsRune(d.Node, '/'):
		return false, nil, &UnknownError{"node", d.Node, known}
	case !d.Force && d.Roll:
		return false, nil, &UnknownError{"node", d.Node, known}
	case !d.Force:
		return false, nil, fmt.Errorf("%w (--force drains a node that is not connected)", &UnknownError{"node", d.Node, known})
	}
	if why, stops := s.stuck(d.Node); len(why) > 0 && !d.Force {
		then := "leaves there what is paused"
		if stops {
			then = "what no other node could take stops"
		}
		hint := fmt.Sprintf(" (--force drains %s anyway, and %s)", d.Node, then)
		if d.Roll {
			hint = ""
		}
		return false, leaving, refused("%s%s", strings.Join(why, "; "), hint)
	}
	dir := election.DrainedDir(c.root)
	data := election.Drained{Since: time.Now().UTC(), By: d.By, Why: d.Why}.Encode()
	for _, at := range []struct {
		path string
		data []byte
	}{{dir, nil}, {path.Join(dir, d.Node), data}} {
		_, err = insist(ctx, "create "+at.path, func() (string, error) { return c.conn.Create(at.path, at.data, 0, c.acl) })
		if err != nil && !errors.Is(err, zk.ErrNodeExists) { // it was us, and the answer was lost, or another operator
			return false, leaving, err
		}
	}
	if s, err = c.Status(ctx); err != nil || d.Force {
		return true, leaving, err
	}
	if why, _ := s.stuck(d.Node); len(why) > 0 { // another node was drained at the same time
		_, err = c.Undrain(ctx, d.Node, d.By)
		return false, leaving, cmp.Or(err, refused("%s", strings.Join(why, "; ")))
	}
	return true, leaving, nil
}

// Undrain lets a node stand for services again. It tells whether it was drained, and fails for a node that nobody knows. It waits a moment
// until the node has heard of it: what is ordered next, a switchover or another drain, may need that node.
func (c *Cluster) Undrain(ctx context.Context, node, by string) (changed bool, err error) {
	dir := election.DrainedDir(c.root)
	at := path.Join(dir, node)
	order, err := c.read(ctx, at)
	if err != nil {
		return false, err
	}
	if !order.exists {
		s, err := c.Status(ctx)
		if known := s.NodeNames(); err == nil && !slices.Contains(known, node) {
			err = &UnknownError{"node", node, known}
		}
		return false, err
	}
	ended := election.Undrained{Node: node, Drain: order.stat.Czxid, By: by, At: time.Now().UTC()}.Encode()
	_, err = insist(ctx, "delete "+at, func() ([]zk.MultiResponse, error) {
		return c.conn.Multi(&zk.SetDataRequest{Path: dir, Data: ended, Version: -1}, &zk.DeleteRequest{Path: at, Version: -1})
	})
	if errors.Is(err, zk.ErrNoNode) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	words := election.ReadDrained(order.data, order.stat).Words()
	ctx, cancel := context.WithTimeout(ctx, arriving)
	defer cancel()
	for {
		s, err := c.Status(ctx)
		if err != nil || !s.stays(node, words) || !wait.For(ctx, departing) {
			return true, nil // it is ordered, whether the node has heard of it or not
		}
	}
}

// stays reports whether a node still gives these words, those of a drain, as the reason for which it does not stand.
func (s Status) stays(node, words string) bool {
	return slices.ContainsFunc(s.Services, func(v ServiceStatus) bool { return member(v, node).Why == words })
}

// remove deletes a znode, and tells whether it was there.
func (z znodes) remove(ctx context.Context, path string) (bool, error) {
	_, err := insist(ctx, "delete "+path, func() (struct{}, error) { return struct{}{}, z.conn.Delete(path, -1) })
	if errors.Is(err, zk.ErrNoNode) {
		return false, nil
	}
	return err == nil, err
}

const (
	departing = 200 * time.Millisecond // how often a node that is drained is looked at
	arriving  = 3 * time.Second        // how long a service that has left it is looked for, or a node to stand again
)

// Empty waits until nothing is active on a drained node any more, nor can be: it stands for no service. A moment longer it waits until what
// has left it runs elsewhere.
func (c *Cluster) Empty(ctx context.Context, node string, leaving []Departure) ([]Departure, error) {
	there := leaving
	var left time.Time // when nothing was active there any more
	for {
		asked := time.Now()
		s, err := c.Status(ctx)
		if err != nil && ctx.Err() == nil {
			return leaving, err
		}
		if err != nil {
			return leaving, late(cutOff(ctx, asked, err), stillOn(node, there))
		}
		away := true
		there = append(s.on(node), s.standing(node)...)
		for i := range leaving {
			leaving[i].To = ""
			if v := s.service(leaving[i].Service); v.Active != node {
				leaving[i].To = v.Active
			}
			if leaving[i].To != "" {
				leaving[i].Stops, leaving[i].Stays = "", false
			}
			away = away && leaving[i].To != ""
		}
		if len(there) == 0 && left.IsZero() {
			left = time.Now()
		}
		if len(there) == 0 && (away || time.Since(left) > arriving) {
			return leaving, nil
		}
		if wait.For(ctx, departing) {
			continue
		}
		if len(there) == 0 {
			return leaving, nil
		}
		return leaving, late(context.Cause(ctx), stillOn(node, there))
	}
}

func stillOn(node string, there []Departure) string {
	return fmt.Sprintf("%s stays drained, but has not given up yet: %s", node, strings.Join(services(there), ", "))
}

func services(all []Departure) (names []string) {
	for _, d := range all {
		names = append(names, d.Service)
	}
	return names
}

// on are the services that are active on a node, or about to be.
func (s Status) on(node string) (all []Departure) {
	for _, v := range s.Services {
		if v.Lock != node {
			continue
		}
		d := Departure{Service: v.Service, Stays: v.Paused}
		if !v.Paused && !slices.ContainsFunc(v.Members, func(m MemberStatus) bool { return m.Node != node && fit(m) }) {
			d.Stops = others(v)
		}
		all = append(all, d)
	}
	return all
}

// standing are the services that a node may take any moment, as it has not heard yet that it is drained.
func (s Status) standing(node string) (all []Departure) {
	for _, v := range s.Services {
		if m := member(v, node); v.Lock != node && !v.Paused && waits(m) && m.Health == election.HealthOK {
			all = append(all, Departure{Service: v.Service})
		}
	}
	return all
}

func (s Status) service(name string) ServiceStatus {
	for _, v := range s.Services {
		if v.Service == name {
			return v
		}
	}
	return ServiceStatus{Service: name}
}

func (s Status) drained(node string) *DrainedNode {
	for i := range s.Drained {
		if s.Drained[i].Node == node {
			return &s.Drained[i]
		}
	}
	return nil
}

// DrainedActive tells why the active node is to give the service away; nil: it is not.
func (s ServiceStatus) DrainedActive() *DrainedNode { return member(s, s.Active).Drained }

// Connected reports whether the node's supervisor is.
func (s Status) Connected(node string) bool {
	return slices.ContainsFunc(s.Nodes, func(n NodeStatus) bool { return n.Node == node })
}

// NodeNames are all nodes that are known, connected or not.
func (s Status) NodeNames() (all []string) {
	for _, n := range s.Nodes {
		all = append(all, n.Node)
	}
	for _, d := range s.Drained {
		all = append(all, d.Node)
	}
	for _, g := range s.Gone {
		all = append(all, g.Node)
	}
	for _, v := range s.Services {
		all = slices.Concat(all, names(v.Members), v.Known)
		if v.Fencing != nil && v.Fencing.Node != "" {
			all = append(all, v.Fencing.Node)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// stuck tells why services that a node has could run nowhere else, and whether one of them would stop. One that is paused stays.
func (s Status) stuck(node string) (why []string, stops bool) {
	for _, d := range s.on(node) {
		switch {
		case d.Stays:
			order := s.service(d.Service).Order
			why = append(why, fmt.Sprintf("%s is %s: `understudy resume %s` first", d.Service, order, printable.Word(d.Service)))
		case d.Stops != "":
			why, stops = append(why, fmt.Sprintf("no other node could take %s: %s", d.Service, d.Stops)), true
		}
	}
	return why, stops
}
