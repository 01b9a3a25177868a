package config

import (
	"slices"

	"gopkg.in/yaml.v3"
)

// given reports whether the file gives a value for p, a good one or not.
func (d *decoder) given(p path) bool {
	_, ok := d.spots[p.id()]
	return ok
}

// place reports each finding where the user has to look. What follows from a value that was refused already is left
// out, and so is the service's share in a fault of the defaults.
func (d *decoder) place(all []found) {
	for _, f := range all {
		if d.blamed(f) {
			continue
		}
		p, file, n := d.locate(f)
		d.addIn(file, n, p, f.message)
	}
}

func (d *decoder) blamed(f found) bool {
	for _, p := range f.keys {
		if d.isBad(p) && !f.onKey {
			return true
		}
		if d.given(p) {
			continue
		}
		for _, q := range origins(p) {
			if d.isBad(q) {
				return true
			}
			if d.given(q) {
				break
			}
		}
	}
	return false
}

func (d *decoder) isBad(p path) bool {
	for i := range len(p) + 1 {
		if d.bad[p[:i].id()] {
			return true
		}
	}
	return d.holdsBad[p.id()]
}

// locate finds the key that is at fault: one that was given where it counts, else one that it was inherited from, else
// what it is missing from.
func (d *decoder) locate(f found) (path, string, *yaml.Node) {
	for _, p := range f.keys {
		if s, ok := d.spots[p.id()]; ok {
			if f.onKey {
				return p, s.file, s.key
			}
			return p, s.file, s.value
		}
	}
	for _, p := range f.keys {
		for _, q := range origins(p) {
			if s, ok := d.spots[q.id()]; ok {
				return q, s.file, s.value
			}
		}
	}
	blamed := f.keys[0]
	for i := len(blamed) - 1; i > 0; i-- {
		if s, ok := d.spots[blamed[:i].id()]; ok {
			return blamed, s.file, s.key
		}
	}
	return blamed, d.file, &yaml.Node{}
}

// origins is where the value of a key that was not given comes from, nearest first: a process has its service's, and a
// service that of the defaults.
func origins(p path) []path {
	var from []path
	if len(p) >= 5 && p[0] == "services" && p[2] == "processes" {
		p = slices.Concat(p[:2], p[4:])
		from = append(from, p)
	}
	if len(p) >= 3 && p[0] == "services" {
		from = append(from, slices.Concat(path{"defaults"}, p[2:]))
	}
	return from
}
