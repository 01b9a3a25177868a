package config

import (
	"fmt"
	"slices"

	"gopkg.in/yaml.v3"
)

// spot is where a key and its value stand in the files. A mapping may be made of several, the nearest first.
type spot struct {
	file       string
	key, value *yaml.Node
	at         path // as the file says it
	own        bool // it is written for what it counts for, and not inherited
	hides      bool // it is in the place of one that would be inherited
}

// with is where a key of a mapping stands.
func (s spot) with(key, value *yaml.Node) spot {
	return spot{file: s.file, key: key, value: value, at: s.at.key(key.Value), own: s.own}
}

// told is what is known of all files, for whatever node they were read.
type told struct {
	file    string // the one that is being read
	faults  Faults
	said    map[Fault]bool // a fault is told once, however often it is met
	values  int            // of all nodes that were read before
	skipped bool           // the files stand for too many values
}

// positions remembers where each value stands that counts for a node, and which values have faults.
type positions struct {
	*told
	spots    map[string]spot // by path.id
	bad      map[string]bool // by path.id: values that have a fault already
	holdsBad map[string]bool // by path.id: what a bad value lies in
}

func newPositions(t *told) *positions {
	return &positions{told: t, spots: map[string]spot{}, bad: map[string]bool{}, holdsBad: map[string]bool{}}
}

// fault reports what is wrong with the value at p, which stands at n.
func (l *positions) fault(n *yaml.Node, p path, format string, args ...any) {
	l.markBad(p)
	l.add(n, p, fmt.Sprintf(format, args...))
}

func (l *positions) add(n *yaml.Node, p path, message string) {
	l.addIn(l.file, n, l.written(p), message)
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

// given reports whether the files give a value for p itself, a good one or not.
func (l *positions) given(p path) bool { return l.spots[p.id()].own }

// place reports each finding where the user has to look. It leaves out consequences of a value that was refused already.
func (l *positions) place(all []found) {
	for _, f := range all {
		if !l.blamed(f) {
			p, file, n := l.locate(f)
			l.addIn(file, n, p, f.message)
		}
	}
}

func (l *positions) blamed(f found) bool {
	for _, p := range f.keys {
		for q, more := p, !f.onKey || !l.given(p); more; q, more = inherits(q) {
			s, given := l.spots[q.id()]
			if l.isBad(q) || given && l.isBad(s.at) {
				return true
			} else if given {
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
		if s := l.spots[p.id()]; s.own && f.onKey {
			return s.at, s.file, s.key
		} else if s.own {
			return s.at, s.file, s.value
		}
	}
	for _, p := range f.keys {
		for q, more := p, true; more; q, more = inherits(q) {
			if s, ok := l.spots[q.id()]; ok {
				return s.at, s.file, s.value
			}
		}
	}
	blamed := f.keys[0]
	if _, s := l.above(blamed); s.own {
		return l.written(blamed), s.file, s.key
	}
	return blamed, l.file, &yaml.Node{}
}

// above is the nearest mapping or list that is given, and holds p.
func (l *positions) above(p path) (int, spot) {
	for i := len(p) - 1; i > 0; i-- {
		if s := l.spots[p[:i].id()]; s.own {
			return i, s
		}
	}
	return 0, spot{}
}

// written is p as the user has written it, or would have to.
func (l *positions) written(p path) path {
	if s, ok := l.spots[p.id()]; ok {
		return s.at
	}
	if i, s := l.above(p); s.own {
		return slices.Concat(s.at, p[i:])
	}
	return p
}

// inherits is the key that a key which is not given inherits from: a process from its service, a service from the defaults.
func inherits(p path) (path, bool) {
	switch {
	case len(p) < 3 || p[0] != "services" || len(p) == 5 && p[2] == "processes" && p[4] == "command": // each has its own
		return nil, false
	case len(p) > 4 && p[2] == "processes":
		return slices.Concat(p[:2], p[4:]), true
	}
	return slices.Concat(path{"defaults"}, p[2:]), true
}
