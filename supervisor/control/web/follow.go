package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"understudy/election"
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
			s.stream.rest()
			select {
			case <-s.stream.wanted:
			case <-ctx.Done():
			}
			continue
		}
		stirred := s.cfg.Board.stirred()
		if now, err := s.look(ctx); err != nil {
			s.stream.fail(err.Error())
		} else if events := now.changes(last, time.Now()); len(events) > 0 || last == nil || s.stream.failing() {
			last = now
			now.whole["local"] = s.local()
			s.stream.publish(now.whole, events...)
		}
		select {
		case <-stirred:
			rest(ctx, settling)
		case <-s.stream.wanted:
		case <-time.After(pace):
		case <-ctx.Done():
		}
	}
}

// rest waits.
func rest(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// look reads the cluster as it is now.
func (s *Server) look(ctx context.Context) (*view, error) {
	text, err := s.cluster.since(ctx, "", time.Now())
	if err != nil {
		return nil, err
	}
	return parseView(text)
}

// view is the cluster as it was read: the parts that are compared, and all of it.
type view struct {
	whole    map[string]any
	services map[string]*service
	nodes    json.RawMessage
}

// service is one of a view's.
type service struct {
	text    json.RawMessage
	Service string
	Active  string
	Token   int64
	Members []struct {
		Node   string
		Role   election.Role
		Health election.Health
		Why    string
	}
}

func parseView(text []byte) (*view, error) {
	var all map[string]any
	var parts struct {
		Services []json.RawMessage
		Nodes    json.RawMessage
	}
	if err := json.Unmarshal(text, &parts); err != nil {
		return nil, fmt.Errorf("read the cluster's status: %w", err)
	}
	all = map[string]any{"services": parts.Services, "nodes": parts.Nodes}
	v := &view{whole: all, services: map[string]*service{}, nodes: parts.Nodes}
	for _, text := range parts.Services {
		one := &service{text: text}
		if err := json.Unmarshal(text, one); err != nil {
			return nil, fmt.Errorf("read a service's status: %w", err)
		}
		v.services[one.Service] = one
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
		if before != nil && bytes.Equal(before.text, now.text) {
			continue
		}
		if before == nil {
			before = &service{}
		}
		for _, t := range transitions(before, now) {
			t.At, t.Service = at.UTC(), name
			events = append(events, event{"transition", t})
		}
		events = append(events, event{"service", now.text})
	}
	for _, name := range slices.Sorted(maps.Keys(was.services)) {
		if v.services[name] == nil {
			events = append(events, event{"removed", map[string]string{"service": name}})
		}
	}
	if !bytes.Equal(was.nodes, v.nodes) {
		events = append(events, event{"nodes", v.nodes})
	}
	return events
}

// transitions are the members' that have another role than before.
func transitions(before, now *service) []transition {
	roles := map[string]election.Role{}
	for _, m := range before.Members {
		roles[m.Node] = m.Role
	}
	var list []transition
	for _, m := range now.Members {
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
