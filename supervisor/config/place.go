package config

import "gopkg.in/yaml.v3"

// found is a fault of Validate's: what is wrong with which keys, wherever they came from.
type found struct {
	keys    []path // the first is the one to blame; the others take part
	onKey   bool   // it is the key itself that is wrong
	message string
}

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
		p, n := d.locate(f)
		d.add(n, p, f.message)
	}
}

func (d *decoder) blamed(f found) bool {
	for _, p := range f.keys {
		if d.isBad(p) && !f.onKey {
			return true
		}
		if q, ok := inDefaults(p); ok && !d.given(p) && d.isBad(q) {
			return true
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

// locate finds the key that is at fault: one the service gives, else one of the defaults, else what it is missing from.
func (d *decoder) locate(f found) (path, *yaml.Node) {
	for _, p := range f.keys {
		if s, ok := d.spots[p.id()]; ok {
			if f.onKey {
				return p, s.key
			}
			return p, s.value
		}
	}
	for _, p := range f.keys {
		if q, ok := inDefaults(p); ok && d.given(q) {
			return q, d.spots[q.id()].value
		}
	}
	blamed := f.keys[0]
	for i := len(blamed) - 1; i > 0; i-- {
		if s, ok := d.spots[blamed[:i].id()]; ok {
			return blamed, s.key
		}
	}
	return blamed, &yaml.Node{}
}

// inDefaults is where the value of a service's key comes from when the service does not give it.
func inDefaults(p path) (path, bool) {
	if len(p) < 3 || p[0] != "services" {
		return nil, false
	}
	return append(path{"defaults"}, p[2:]...), true
}
