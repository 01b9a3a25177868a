package config

import (
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// mostValues bounds what the files stand for once their aliases are followed, and mostForAll that for all nodes together.
const (
	mostValues = 500_000
	mostForAll = 4 * mostValues
)

// mostFaults is how many faults are reported; a file with more is not one of ours.
const mostFaults = 1000

// decoder fills Go values from nodes. It does not stop at a fault.
type decoder struct {
	*positions
	doc      document
	node     string          // the one that counts; "": what the files say for all
	named    map[string]bool // the nodes that the files name
	defaults []spot          // what every service inherits from; filled before the first one is read
	start    written         // what every service starts from
	base     *Program        // what the processes of the service that is being read start from
	read     int             // values
}

func reflectOf[T any](target *T) reflect.Value { return reflect.ValueOf(target).Elem() }

// full reports whether a bound is reached; the rest of the file is then skipped.
func (d *decoder) full() bool {
	d.skipped = d.skipped || d.read > mostValues || d.values+d.read > mostForAll
	return d.skipped || len(d.faults) >= mostFaults
}

// value reads what stands at a spot, and below it what is inherited, into v. A fault leaves v as it was.
func (d *decoder) value(at []spot, v reflect.Value, p path) {
	d.read++
	if d.full() {
		return
	}
	defer func(file string) { d.file = file }(d.file)
	d.file = at[0].file
	n := follow(at[0].value)
	if n.Style&yaml.TaggedStyle != 0 {
		d.fault(n, p, "the tag %s is not understood: leave it out", shorten(n.Tag))
		return
	}
	switch target := v.Addr().Interface().(type) {
	case *Command:
		d.command(at[0], target, p)
		return
	case *Hook:
		for _, one := range slices.Backward(at) {
			if one.value = follow(one.value); one.value.Kind == yaml.MappingNode {
				d.structure([]spot{one}, v, p)
				continue
			}
			one.at, d.file = one.at.key("command"), one.file // the short form
			d.spots[p.key("command").id()] = one
			d.command(one, &target.Command, p)
		}
		return
	case *Address:
		target.Announce = defaultAnnounce
		if n.Kind == yaml.ScalarNode && !isNull(n) { // the short form
			d.value(at[:1], reflectOf(&target.IP), p)
			return
		}
		if n.Kind == yaml.SequenceNode {
			d.fault(n, p, "a list where one address is expected, such as 192.0.2.10 or {ip: 192.0.2.10, device: eth0}: "+
				"write an item for each address")
			return
		}
	case *Addresses:
		if n.Kind != yaml.SequenceNode {
			var one Address
			d.value(at[:1], reflectOf(&one), p)
			*target = Addresses{one}
			return
		}
	case *Limit:
		d.limit(at[:1], target, p)
		return
	case *InheritEnv:
		d.inheritEnv(at[:1], target, p)
		return
	case *nodeKey:
		d.nodeKey(at[0], target, p)
		return
	}
	if want, read := scalar(v); read != nil {
		if word, ok := d.word(n, p, want); ok {
			if err := read(word); err != nil {
				d.fault(n, p, "%v", err)
			}
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		d.pointer(at, v, p)
	case reflect.Struct:
		d.structure(at, v, p)
	case reflect.Map:
		d.mapping(at, v, p)
	case reflect.Slice:
		d.list(at[0], v, p)
	default:
		panic("config: no rule reads a " + v.Type().String())
	}
}

func (d *decoder) pointer(at []spot, v reflect.Value, p path) {
	target := reflect.New(v.Type().Elem())
	if t, ok := target.Interface().(interface{ setDefaults() }); ok {
		t.setDefaults()
	}
	d.value(at, target.Elem(), p)
	if list := target.Elem(); list.Kind() == reflect.Slice && list.IsNil() {
		list.Set(reflect.MakeSlice(list.Type(), 0, 0)) // [] is no null, in JSON either
	}
	v.Set(target)
}

// structure reads a mapping whose keys are known.
func (d *decoder) structure(at []spot, v reflect.Value, p path) {
	// It may be the secret itself.
	if n := follow(at[0].value); v.Type() == reflect.TypeFor[ZooKeeperAuth]() && n.Kind == yaml.ScalarNode && !isNull(n) {
		d.fault(n, p, "text where a mapping is expected: write {scheme: digest, file: ...} and put user:password into the file")
		return
	}
	fields := fieldsOf(v.Type())
	given := d.keys(at, p, fields)
	switch read := v.Addr().Interface().(type) {
	case *document:
		d.ofNode(given)
	case *written: // its keys are read before processes are
		d.base = &read.Program
	case *entry:
		d.base = &read.Program
	}
	for _, f := range fields {
		spots, ok := given[f.name]
		if !ok {
			continue
		}
		delete(given, f.name)
		doc, isDocument := v.Addr().Interface().(*document)
		if isDocument && f.name == "defaults" {
			doc.Defaults, d.defaults = d.start, spots
		}
		d.keyed(spots, v.FieldByIndex(f.index), p.key(f.name))
		if z, ok := v.Addr().Interface().(*ZooKeeper); ok && f.name == "profile" {
			d.times(z)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if unknown := given[name][0]; unknown.own && !d.full() {
			d.unknown(unknown.key, v.Type(), p)
		}
	}
}

// keys are the keys of a mapping with what they are made of. One of a group hides all of that group that would be inherited.
func (d *decoder) keys(at []spot, p path, fields []field) map[string][]spot {
	given, first := map[string][]spot{}, map[string]string{} // of each group
	for i, from := range at {
		if i > 0 && follow(from.value).Kind != yaml.MappingNode {
			continue
		}
		d.file = from.file
		here := d.pairs(from, p)
		nearer := maps.Clone(first)
		for _, f := range fields {
			one, ok := here[f.name]
			switch {
			case !ok || f.group == "":
			case nearer[f.group] != "":
				delete(here, f.name)
			case first[f.group] != "":
				d.fault(one.key, p.key(f.name), "does not go together with %s: give one of them", first[f.group])
			default:
				first[f.group] = f.name
			}
		}
		for name, one := range here {
			if given[name] = append(given[name], one); len(given[name]) > 1 {
				given[name][0].hides = true
			}
		}
	}
	d.file = at[0].file
	return given
}

// times takes the defaults of a profile, before the keys are read that may say otherwise.
func (d *decoder) times(z *ZooKeeper) {
	if times, ok := profiles[z.Profile]; ok {
		z.Lease, d.start.GraceDelay = times.lease, times.grace
	}
}

// keyed reads the value of one key, and remembers where both stand.
func (d *decoder) keyed(at []spot, v reflect.Value, p path) {
	here := at[0]
	if here.value = follow(here.value); isNull(here.value) && here.value.Value == "" {
		here.value = here.key
	}
	d.spots[p.id()] = here
	if isNull(at[0].value) && v.Kind() != reflect.Struct && v.Kind() != reflect.Pointer && v.Kind() != reflect.Map {
		d.fault(here.value, p, "has no value: write one, or leave the key out")
		return
	}
	d.value(at, v, p)
}

// mapping reads a mapping whose keys are the user's.
func (d *decoder) mapping(at []spot, v reflect.Value, p path) {
	given := d.keys(at, p, nil)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if d.full() {
			return
		}
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		p, key, from := p.key(name), reflect.ValueOf(name), given[name]
		item := reflect.New(v.Type().Elem()).Elem()
		switch read := item.Addr().Interface().(type) {
		case *written: // of one node: it is read for that one
			d.spots[p.id()], d.named[name] = from[0], true
		case *entry:
			if v.MapIndex(key).IsValid() { // a file's own repetitions are told by pairs
				first := d.spots[p.id()]
				d.fault(from[0].key, p, "defined twice: it is at %s:%d:%d too", first.file, first.key.Line, first.key.Column)
				continue
			}
			read.written = d.start
			d.entry(from[0], read, p)
		default:
			d.keyed(from, item, p)
		}
		v.SetMapIndex(key, item)
	}
}

// entry reads a service, which inherits from the defaults. What it says for the node that counts is nearer than the rest.
func (d *decoder) entry(at spot, target *entry, p path) {
	var own []spot
	if n := follow(at.value); n.Kind == yaml.MappingNode && n.Style&yaml.TaggedStyle == 0 {
		own = d.perNode(d.keys([]spot{at}, p, nil)["nodes"], p.key("nodes"))
	}
	if own == nil {
		d.keyed(inherit([]spot{at}, d.defaults), reflectOf(target), p)
		return
	}
	d.keyed(inherit(own, append([]spot{at}, d.defaults...)), reflectOf(&target.written), p)
}

// inherit puts what is inherited below what is given.
func inherit(given, inherited []spot) []spot {
	for _, s := range inherited {
		s.own = false
		given = append(given, s)
	}
	return given
}

func (d *decoder) list(from spot, v reflect.Value, p path) {
	n := follow(from.value)
	if n.Kind != yaml.SequenceNode {
		d.fault(n, p, "%s where a list is expected%s", kindOf(n), listForm(n, v.Type().Elem(), p))
		return
	}
	items := reflect.Zero(v.Type())
	for i, node := range n.Content {
		if d.full() {
			return
		}
		at, one := p.item(i), spot{file: from.file, key: node, value: node, at: from.at.item(i), own: true}
		d.spots[at.id()] = one
		item := reflect.New(v.Type().Elem()).Elem()
		if process, ok := item.Addr().Interface().(*Process); ok {
			d.process(one, process, at)
		} else {
			d.value([]spot{one}, item, at)
		}
		items = reflect.Append(items, item)
	}
	v.Set(items)
}

// process reads a process of a service. Some defaults depend on what it is, which is known once it is read.
func (d *decoder) process(from spot, target *Process, p path) {
	target.Program, target.UndoTimeout = d.base.inherited(), defaultUndoTimeout
	d.value([]spot{from}, reflectOf(target), p)
	member := target.Mount != nil || target.OCF != ""
	if (target.Oneshot || member) && !d.given(p.key("ready").key("timeout")) {
		target.Ready.Timeout = 0
	}
	if member && !d.given(p.key("undo_timeout")) {
		target.UndoTimeout = 0 // the agent says it
	}
	if target.Mount != nil && !d.given(p.key("needs_proof")) {
		target.NeedsProof = true
	}
}

// word gives the literal text of a value: 010 stays 010, and yes stays yes.
func (d *decoder) word(n *yaml.Node, p path, want string) (string, bool) {
	switch {
	case n.Kind != yaml.ScalarNode:
		d.fault(n, p, "%s where %s is expected", kindOf(n), want)
	case isNull(n):
		d.fault(n, p, `has no value: write "" for an empty one`)
	default:
		return n.Value, true
	}
	return "", false
}

// limit reads one value for both sides, or {soft: ..., hard: ...}.
func (d *decoder) limit(at []spot, target *Limit, p path) {
	n := follow(at[0].value)
	if share, percent := strings.CutSuffix(n.Value, "%"); percent && n.Kind == yaml.ScalarNode {
		v, err := strconv.ParseUint(strings.TrimSpace(share), 10, 32)
		if err != nil || v == 0 {
			d.fault(n, p, "%s is no percentage: write one such as 150%% (of one processor)", quoted(n.Value))
		}
		*target = Limit{v, v, true}
		return
	}
	if share, err := strconv.ParseFloat(n.Value, 64); p[len(p)-1] == "cpu" && err == nil && share > 0 && share != math.Trunc(share) {
		d.fault(n, p, "%s is not a limit: for %[1]s processors write %.0f%%", n.Value, 100*share)
		return
	}
	if n.Kind != yaml.MappingNode {
		var value limitValue
		d.value(at, reflectOf(&value), p)
		*target = Limit{Soft: uint64(value), Hard: uint64(value)}
		return
	}
	var sides limitSides
	d.structure(at, reflectOf(&sides), p)
	for _, side := range keysOf(reflect.TypeFor[limitSides]()) {
		if _, given := d.spots[p.key(side).id()]; !given && !d.isBad(p.key(side)) {
			d.fault(n, p, "%s is missing: a limit has soft and hard, or is one value for both", side)
		}
	}
	*target = Limit{Soft: uint64(sides.Soft), Hard: uint64(sides.Hard)}
}

func (d *decoder) command(at spot, target *Command, p path) {
	n := follow(at.value)
	if n.Kind == yaml.SequenceNode {
		var words []string
		d.list(at, reflectOf(&words), p)
		*target = words
		return
	}
	line, ok := d.word(n, p, "a list of words or one string")
	if !ok {
		return
	}
	words, err := SplitWords(line)
	if err != nil {
		d.fault(n, p, "%v", err)
		return
	}
	*target = words
}
