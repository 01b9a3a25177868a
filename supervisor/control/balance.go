package control

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"understudy/election"
)

// Move is a switchover that takes a service from a node with more than its share to one with less.
type Move struct {
	Service string `json:"service"`
	From    string `json:"from"`
	To      string `json:"to"`
}

// Balance plans the switchovers after which services with one word (spread) are on different nodes, and no node has more than its share of
// the active services, as far as these may run elsewhere. A service moves to no node that is less preferred than the one that it is on, so
// failback moves none back.
func (c *Cluster) Balance(ctx context.Context) ([]Move, error) {
	s, err := c.Status(ctx)
	if err == nil && len(s.Services)+len(s.NodeNames()) == 0 {
		err = refused("nothing of Understudy is below %s: is --root right?", s.Where)
	}
	if err != nil {
		return nil, err
	}
	priorities := make([]map[string]int, len(s.Services))
	err = all(len(s.Services), func(i int) error {
		names, err := c.children(ctx, election.Paths{Root: c.root, Service: s.Services[i].Service}.Preferred())
		priorities[i] = election.Priorities(names)
		return err
	})
	if err != nil {
		return nil, err
	}
	return balanced(s.Services, priorities), nil
}

// plan is who is where after the moves so far.
type plan struct {
	services   []ServiceStatus
	priorities []map[string]int
	load       map[string]int            // of the nodes that could run anything
	words      map[string]map[string]int // how many services of a word a node has
	moved      map[string]bool
}

func balanced(services []ServiceStatus, priorities []map[string]int) (moves []Move) {
	p := plan{services, priorities, map[string]int{}, map[string]map[string]int{}, map[string]bool{}}
	active := 0
	for _, v := range services {
		for _, m := range v.Members {
			if v.StandsBy(m) {
				p.put(m.Node, "", 0)
			}
		}
		if v.Active != "" {
			p.put(v.Active, v.word(), 1)
			active++
		}
	}
	for share := (active + len(p.load) - 1) / max(len(p.load), 1); ; {
		next, more := p.apart()
		if !more {
			next, more = p.relieve(share)
		}
		if !more {
			return moves
		}
		i := slices.IndexFunc(services, func(v ServiceStatus) bool { return v.Service == next.Service })
		p.put(next.From, services[i].word(), -1)
		p.put(next.To, services[i].word(), 1)
		moves, p.moved[next.Service] = append(moves, next), true
	}
}

// word is what the service has in common with those that are to be on other nodes; "": nothing.
func (s ServiceStatus) word() string { return member(s, s.Active).Spread }

func (p plan) put(node, word string, n int) {
	p.load[node] += n
	if p.words[node] == nil {
		p.words[node] = map[string]int{}
	}
	p.words[node][word] += n
}

// apart is a move of a service from a node that has another one of its word.
func (p plan) apart() (Move, bool) {
	for i, v := range p.services {
		if word := v.word(); word != "" && p.words[v.Active][word] > 1 {
			if to := p.target(i, false); to != "" {
				return Move{v.Service, v.Active, to}, true
			}
		}
	}
	return Move{}, false
}

// relieve is a move from the fullest node that can give a service to one with less.
func (p plan) relieve(share int) (next Move, more bool) {
	full := slices.SortedFunc(maps.Keys(p.load), func(a, b string) int {
		return cmp.Or(cmp.Compare(p.load[b], p.load[a]), cmp.Compare(a, b))
	})
	for _, from := range full {
		if more || p.load[from] <= share {
			break
		}
		for i, v := range p.services {
			if v.Active != from {
				continue
			}
			if to := p.target(i, true); to != "" && (!more || p.load[to] < p.load[next.To]) {
				next, more = Move{v.Service, from, to}, true
			}
		}
	}
	return next, more
}

// target is the emptiest node to which a service may move; "": there is none.
// lighter: it has to have fewer services afterwards than this one has now.
func (p plan) target(i int, lighter bool) (to string) {
	v := p.services[i]
	if p.moved[v.Service] || v.Paused || v.Handing != nil {
		return ""
	}
	for _, m := range v.Members {
		fits := v.StandsBy(m) && p.priorities[i][m.Node] >= p.priorities[i][v.Active] && (v.word() == "" || p.words[m.Node][v.word()] == 0)
		if fits && (!lighter || p.load[m.Node]+1 < p.load[v.Active]) && (to == "" || p.load[m.Node] < p.load[to]) {
			to = m.Node
		}
	}
	return to
}
