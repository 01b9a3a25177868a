package config

import (
	"fmt"
	"slices"

	"gopkg.in/yaml.v3"
)

// spot is where a key and its value stand in the file.
type spot struct {
	file       string
	key, value *yaml.Node
}

// positions remembers where each value stands in the files, and which values have faults.
type positions struct {
	file     string // the one that is being read
	faults   Faults
	said     map[Fault]bool  // an aliased fault is told once
	spots    map[string]spot // by path.id
	bad      map[string]bool // by path.id: values that have a fault already
	holdsBad map[string]bool // by path.id: what a bad value lies in
}

func newPositions(file string) *positions {
	return &positions{file: file, said: map[Fault]bool{}, spots: map[string]spot{}, bad: map[string]bool{}, holdsBad: map[string]bool{}}
}

// fault reports what is wrong with the value at p, which stands at n.
func (l *positions) fault(n *yaml.Node, p path, format string, args ...any) {
	l.markBad(p)
	l.add(n, p, fmt.Sprintf(format, args...))
}

func (l *positions) add(n *yaml.Node, p path, message string) {
	l.addIn(l.file, n, p, message)
}

func (l *positions) addIn(file string, n *yaml.Node, p path, message string) {
	f := Fault{File: file, Line: max(n.Line, 1), Column: max(n.Column, 1), Message: message}
	if l.said[f] {
		return
	}
	l.said[f] = true
	f.Key = p.String()
	l.faults = append(l.faults, f)
}

func (l *positions) markBad(p path) {
	l.bad[p.id()] = true
	for i := range p {
		l.holdsBad[p[:i].id()] = true
	}
}

// given reports whether the file gives a value for p, a good one or not.
func (l *positions) given(p path) bool {
	_, ok := l.spots[p.id()]
	return ok
}

// place reports each finding where the user has to look. It leaves out consequences of a value that was refused
// already, and repetitions in a service of a fault in the defaults.
func (l *positions) place(all []found) {
	for _, f := range all {
		if l.blamed(f) {
			continue
		}
		p, file, n := l.locate(f)
		l.addIn(file, n, p, f.message)
	}
}

func (l *positions) blamed(f found) bool {
	for _, p := range f.keys {
		if l.isBad(p) && !f.onKey {
			return true
		}
		if l.given(p) {
			continue
		}
		for _, q := range origins(p) {
			if l.isBad(q) {
				return true
			}
			if l.given(q) {
				break
			}
		}
	}
	return false
}

func (l *positions) isBad(p path) bool {
	for i := range len(p) + 1 {
		if l.bad[p[:i].id()] {
			return true
		}
	}
	return l.holdsBad[p.id()]
}

// locate finds the key at fault: the one that is given at its own place, else the one that its value is inherited from, else
// the mapping that lacks it.
func (l *positions) locate(f found) (path, string, *yaml.Node) {
	for _, p := range f.keys {
		if s, ok := l.spots[p.id()]; ok {
			if f.onKey {
				return p, s.file, s.key
			}
			return p, s.file, s.value
		}
	}
	for _, p := range f.keys {
		for _, q := range origins(p) {
			if s, ok := l.spots[q.id()]; ok {
				return q, s.file, s.value
			}
		}
	}
	blamed := f.keys[0]
	for i := len(blamed) - 1; i > 0; i-- {
		if s, ok := l.spots[blamed[:i].id()]; ok {
			return blamed, s.file, s.key
		}
	}
	return blamed, l.file, &yaml.Node{}
}

// origins are the keys that a key which is not given inherits from, nearest first: a process inherits from its service,
// a service from the defaults, and an override for one node from the key that it overrides.
func origins(p path) []path {
	var from []path
	if last := len(p) - 1; last > 1 && p[last-2] == "processes" && p[last] == "command" {
		return nil // each has its own
	}
	if all, isOverride := everywhere(p); isOverride {
		if len(p) >= 7 && p[4] == "processes" {
			from = append(from, slices.Concat(p[:4], p[6:]))
		}
		return append(append(from, all), origins(all)...)
	}
	if len(p) >= 5 && p[0] == "services" && p[2] == "processes" {
		p = slices.Concat(p[:2], p[4:])
		from = append(from, p)
	}
	if len(p) >= 3 && p[0] == "services" {
		from = append(from, slices.Concat(path{"defaults"}, p[2:]))
	}
	return from
}
