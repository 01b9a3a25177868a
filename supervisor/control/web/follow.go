package web

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"understudy/election"
	"understudy/supervisor/control"
	"understudy/supervisor/wait"
)

const (
	// pace is how often the cluster is looked at while somebody watches.
	pace = 500 * time.Millisecond
	// settling is how long a change here may take until ZooKeeper tells of it.
	settling = 80 * time.Millisecond
	// lingering is how long the numbering of events goes on without a watcher, for one that comes back.
	lingering = 30 * time.Second
)

// follow publishes what changes in the cluster, while somebody watches.
func (s *Server) follow(ctx context.Context) {
	var last *view
	var alone time.Time // since when nobody watches
	for ctx.Err() == nil {
		if s.stream.watchers.Load() > 0 {
			alone = time.Now()
		} else if time.Since(alone) > lingering {
			last = nil
			s.stream.forget()
			select {
			case <-s.stream.wanted:
			case <-ctx.Done():
			}
			continue
		}
		changes := s.cfg.Board.changes()
		if now, err := s.look(ctx); err != nil {
			s.stream.fail(err.Error())
		} else if events := now.changes(last, time.Now()); len(events) > 0 || last == nil || s.stream.failing() {
			last = now
			s.stream.publish(s.whole(now.all), events...)
		}
		select {
		case <-changes:
			wait.For(ctx, settling)
		case <-s.stream.wanted:
		case <-time.After(pace):
		case <-ctx.Done():
		}
	}
}

// look reads the cluster as it is now.
func (s *Server) look(ctx context.Context) (*view, error) {
	all, err := s.cluster.since(ctx, "", time.Now())
	if err != nil {
		return nil, err
	}
	return newView(all)
}

// view is the cluster as it was read, and what is compared: the texts that clients see.
type view struct {
	all      control.Status
	services map[string]seen
	nodes    json.RawMessage
	drained  json.RawMessage
	gone     json.RawMessage
}

// seen is one service of a view.
type seen struct {
	control.ServiceStatus
	text json.RawMessage
}

func newView(all control.Status) (v *view, err error) {
	v = &view{all: all, services: map[string]seen{}}
	if v.nodes, err = json.Marshal(all.Nodes); err != nil {
		return nil, err
	}
	if v.drained, err = json.Marshal(append([]control.DrainedNode{}, all.Drained...)); err != nil {
		return nil, err
	}
	if v.gone, err = json.Marshal(append([]control.GoneNode{}, all.Gone...)); err != nil {
		return nil, err
	}
	for _, s := range all.Services {
		text, err := json.Marshal(s)
		if err != nil {
			return nil, err
		}
		v.services[s.Service] = seen{s, text}
	}
	return v, nil
}

// transition is one node's, of one service.
type transition struct {
	At      time.Time       `json:"at"` // when it was seen here
	Service string          `json:"service"`
	Node    string          `json:"node"`
	From    election.Role   `json:"from"` // empty: it was not there
	To      election.Role   `json:"to"`   // empty: it is gone
	Health  election.Health `json:"health"`
	Why     string          `json:"why"`
}

// changes tells what differs from an earlier view.
func (v *view) changes(was *view, at time.Time) []event {
	if was == nil {
		return nil
	}
	var events []event
	for _, name := range slices.Sorted(maps.Keys(v.services)) {
		now, before := v.services[name], was.services[name]
		if bytes.Equal(before.text, now.text) {
			continue
		}
		for _, t := range transitions(before.Members, now.Members) {
			t.At, t.Service = at.UTC(), name
			events = append(events, event{"transition", t})
		}
		events = append(events, event{"service", now.text})
	}
	for _, name := range slices.Sorted(maps.Keys(was.services)) {
		if _, there := v.services[name]; !there {
			events = append(events, event{"removed", map[string]string{"service": name}})
		}
	}
	if !bytes.Equal(was.nodes, v.nodes) {
		events = append(events, event{"nodes", v.nodes})
	}
	if !bytes.Equal(was.drained, v.drained) {
		events = append(events, event{"drained", v.drained})
	}
	if !bytes.Equal(was.gone, v.gone) {
		events = append(events, event{"gone", v.gone})
	}
	return events
}

// transitions are the members' that have another role than before.
func transitions(before, now []control.MemberStatus) []transition {
	roles := map[string]election.Role{}
	for _, m := range before {
		roles[m.Node] = m.Role
	}
	var list []transition
	for _, m := range now {
		if roles[m.Node] != m.Role {
			list = append(list, transition{Node: m.Node, From: roles[m.Node], To: m.Role, Health: m.Health, Why: m.Why})
		}
		delete(roles, m.Node)
	}
	for _, node := range slices.Sorted(maps.Keys(roles)) {
		list = append(list, transition{Node: node, From: roles[node]})
	}
	return list
}
