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

// Balance plans the switchovers after which no node has more than its share of the active services, as far as these may run elsewhere. A
// service moves to no node that is less preferred than the one that it is on, so failback moves none back.
func (c *Cluster) Balance(ctx context.Context) ([]Move, error) {
	s, err := c.Status(ctx)
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

func balanced(services []ServiceStatus, priorities []map[string]int) (moves []Move) {
	load, active := map[string]int{}, 0 // of the nodes that could run anything
	for _, v := range services {
		for _, m := range v.Members {
			if v.StandsBy(m) {
				load[m.Node] += 0
			}
		}
		if v.Active != "" {
			load[v.Active]++
			active++
		}
	}
	if len(load) == 0 {
		return nil
	}
	share := (active + len(load) - 1) / len(load)
	moved := map[string]bool{}
	for {
		full := slices.SortedFunc(maps.Keys(load), func(a, b string) int { return cmp.Or(cmp.Compare(load[b], load[a]), cmp.Compare(a, b)) })
		next := Move{}
		for _, from := range full {
			if next.Service != "" || load[from] <= share {
				break
			}
			for i, v := range services {
				if v.Active != from || moved[v.Service] || v.Paused || v.Handing != nil {
					continue
				}
				for _, m := range v.Members {
					better := next.Service == "" || load[m.Node] < load[next.To]
					if v.StandsBy(m) && priorities[i][m.Node] >= priorities[i][from] && load[m.Node]+1 < load[from] && better {
						next = Move{v.Service, from, m.Node}
					}
				}
			}
		}
		if next.Service == "" {
			return moves
		}
		moves, moved[next.Service] = append(moves, next), true
		load[next.From]--
		load[next.To]++
	}
}
