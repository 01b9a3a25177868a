package config

import (
	"reflect"

	"gopkg.in/yaml.v3"
)

// mostValues bounds what a file stands for once its aliases are followed.
const mostValues = 500_000

// mostFaults is how many faults are reported; a file with more is not one of ours.
const mostFaults = 1000

// decoder fills Go values from nodes. It does not stop at a fault.
type decoder struct {
	*positions
	defaults *written // what every service starts from; filled before the first one is read
	base     *Program // what the processes of the service that is being read start from
	service  *written // what the overrides of single nodes start from
	values   int
}

func reflectOf[T any](target *T) reflect.Value { return reflect.ValueOf(target).Elem() }

// full reports whether a bound is reached; the rest of the file is then skipped.
func (d *decoder) full() bool {
	return d.values > mostValues || len(d.faults) >= mostFaults
}

// value reads n into v. A fault leaves v as it was.
func (d *decoder) value(n *yaml.Node, v reflect.Value, p path) {
	d.values++
	if d.full() {
		return
	}
	n = follow(n)
	if n.Style&yaml.TaggedStyle != 0 {
		d.fault(n, p, "the tag %s is not understood: leave it out", shorten(n.Tag))
		return
	}
	switch target := v.Addr().Interface().(type) {
	case *Command:
		d.command(n, target, p)
		return
	case *Hook:
		if n.Kind != yaml.MappingNode { // the short form
			d.spots[p.key("command").id()] = d.spots[p.id()]
			d.command(n, &target.Command, p)
			return
		}
	case *Address:
		target.Announce = defaultAnnounce
		if n.Kind == yaml.ScalarNode && !isNull(n) { // the short form
			d.value(n, reflectOf(&target.IP), p)
			return
		}
		if n.Kind == yaml.SequenceNode {
			d.fault(n, p, "a list where one address is expected, such as 192.0.2.10 or {ip: 192.0.2.10, device: eth0}: write an item for each address")
			return
		}
	case *Addresses:
		if n.Kind != yaml.SequenceNode {
			var one Address
			d.value(n, reflectOf(&one), p)
			*target = Addresses{one}
			return
		}
	case *Limit:
		d.limit(n, target, p)
		return
	case *InheritEnv:
		d.inheritEnv(n, target, p)
		return
	case *nodeKey:
		d.nodeKey(n, target, p)
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
		d.pointer(n, v, p)
	case reflect.Struct:
		d.structure(n, v, p)
	case reflect.Map:
		d.mapping(n, v, p)
	case reflect.Slice:
		d.list(n, v, p)
	default:
		panic("config: no rule reads a " + v.Type().String())
	}
}

func (d *decoder) pointer(n *yaml.Node, v reflect.Value, p path) {
	target := reflect.New(v.Type().Elem())
	if t, ok := target.Interface().(interface{ setDefaults() }); ok {
		t.setDefaults()
	}
	if !v.IsNil() && v.Elem().Kind() == reflect.Struct { // of all nodes, for one of them
		target.Elem().Set(v.Elem())
	}
	d.value(n, target.Elem(), p)
	if list := target.Elem(); list.Kind() == reflect.Slice && list.IsNil() {
		list.Set(reflect.MakeSlice(list.Type(), 0, 0)) // [] is no null, in JSON either
	}
	v.Set(target)
}

// structure reads a mapping whose keys are known.
func (d *decoder) structure(n *yaml.Node, v reflect.Value, p path) {
	if v.Type() == reflect.TypeFor[ZooKeeperAuth]() && n.Kind == yaml.ScalarNode && !isNull(n) { // it may be the secret itself
		d.fault(n, p, "text where a mapping is expected: write {scheme: digest, file: ...} and put user:password into the file")
		return
	}
	pairs, ok := d.pairs(n, p)
	if !ok {
		return
	}
	switch service := v.Addr().Interface().(type) { // its keys are read before processes and nodes are
	case *written:
		d.base = &service.Program
	case *entry:
		d.base, d.service = &service.Program, &service.written
	}
	given := map[string]pair{}
	for _, pair := range pairs {
		given[pair.name] = pair
	}
	fields := fieldsOf(v.Type())
	d.oneOfEach(fields, given, v, p)
	for _, f := range fields {
		if pair, ok := given[f.name]; ok {
			d.keyed(pair, v.FieldByIndex(f.index), p.key(f.name))
			delete(given, f.name)
			if z, ok := v.Addr().Interface().(*ZooKeeper); ok && f.name == "profile" {
				d.times(z)
			}
		}
	}
	for _, pair := range pairs {
		if _, unknown := given[pair.name]; unknown && !d.full() {
			d.unknown(pair, v.Type(), p)
		}
	}
}

// times takes the defaults of a profile, before the keys are read that may say otherwise.
func (d *decoder) times(z *ZooKeeper) {
	if times, ok := profiles[z.Profile]; ok {
		z.SessionTimeout, d.defaults.GraceDelay = times.session, times.grace
	}
}

// oneOfEach refuses two keys of one group. A key that is given replaces the key of its group that the defaults gave.
func (d *decoder) oneOfEach(fields []field, given map[string]pair, v reflect.Value, p path) {
	first := map[string]string{}
	for _, f := range fields {
		pair, ok := given[f.name]
		if f.group == "" || !ok {
			continue
		}
		if other, two := first[f.group]; two {
			d.fault(pair.key, p.key(f.name), "does not go together with %s: give one of them", other)
			continue
		}
		first[f.group] = f.name
	}
	for _, f := range fields {
		if f.group != "" && first[f.group] != "" {
			v.FieldByIndex(f.index).SetZero()
		}
	}
}

// keyed reads the value of one key, and remembers where both stand.
func (d *decoder) keyed(pair pair, v reflect.Value, p path) {
	value := follow(pair.value)
	if isNull(value) && value.Value == "" {
		value = pair.key
	}
	d.spots[p.id()] = spot{file: d.file, key: pair.key, value: value}
	if isNull(pair.value) && v.Kind() != reflect.Struct && v.Kind() != reflect.Pointer && v.Kind() != reflect.Map {
		d.fault(value, p, "has no value: write one, or leave the key out")
		return
	}
	d.value(pair.value, v, p)
}

// mapping reads a mapping whose keys are the user's.
func (d *decoder) mapping(n *yaml.Node, v reflect.Value, p path) {
	pairs, _ := d.pairs(n, p)
	for _, pair := range pairs {
		if d.full() {
			return
		}
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		at, name := p.key(pair.name), reflect.ValueOf(pair.name)
		item := reflect.New(v.Type().Elem()).Elem()
		var service *written
		switch item := item.Addr().Interface().(type) {
		case *written:
			service, *item = item, d.service.clone()
		case *entry:
			if v.MapIndex(name).IsValid() { // a file's own repetitions are told by pairs
				first := d.spots[at.id()]
				d.fault(pair.key, at, "defined twice: it is at %s:%d:%d too", first.file, first.key.Line, first.key.Column)
				continue
			}
			service, item.written = &item.written, d.defaults.clone()
		}
		d.keyed(pair, item, at)
		if service != nil {
			d.inheritProcesses(service, at)
		}
		v.SetMapIndex(name, item)
	}
}

// inheritProcesses reads inherited processes anew, for a service or a node's override that has no program of its own: they start
// from what is given there.
func (d *decoder) inheritProcesses(service *written, p path) {
	if d.given(p.key("command")) || d.given(p.key("processes")) {
		return
	}
	for _, at := range origins(p.key("processes")) {
		if d.given(at[:len(at)-1].key("command")) {
			return
		}
		if from, ok := d.spots[at.id()]; ok {
			file := d.file
			d.file, d.base = from.file, &service.Program
			d.value(from.value, reflectOf(&service.Processes), p.key("processes"))
			d.file = file
			return
		}
	}
}

func (d *decoder) list(n *yaml.Node, v reflect.Value, p path) {
	if n.Kind != yaml.SequenceNode {
		d.fault(n, p, "%s where a list is expected%s", kindOf(n), listForm(n))
		return
	}
	items := reflect.Zero(v.Type())
	for i, node := range n.Content {
		if d.full() {
			return
		}
		at := p.item(i)
		d.spots[at.id()] = spot{file: d.file, key: node, value: node}
		item := reflect.New(v.Type().Elem()).Elem()
		process, isProcess := item.Addr().Interface().(*Process)
		if isProcess {
			process.Program, process.UndoTimeout = d.base.inherited(), defaultUndoTimeout
		}
		d.value(node, item, at)
		if isProcess && (process.Oneshot || process.OCF != "") && !d.given(at.key("ready").key("timeout")) {
			process.Ready.Timeout = 0
		}
		if isProcess && process.OCF != "" && !d.given(at.key("undo_timeout")) {
			process.UndoTimeout = 0 // the agent says it
		}
		items = reflect.Append(items, item)
	}
	v.Set(items)
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

// inheritEnv reads true, false, or a list of names.
func (d *decoder) inheritEnv(n *yaml.Node, target *InheritEnv, p path) {
	if n.Kind == yaml.SequenceNode {
		names := []string{}
		d.list(n, reflectOf(&names), p)
		*target = append(InheritEnv{}, names...)
		return
	}
	all := true
	d.value(n, reflectOf(&all), p)
	*target = nil
	if !all {
		*target = InheritEnv{}
	}
}

// limit reads one value for both sides, or {soft: ..., hard: ...}.
func (d *decoder) limit(n *yaml.Node, target *Limit, p path) {
	if n.Kind != yaml.MappingNode {
		var value limitValue
		d.value(n, reflectOf(&value), p)
		*target = Limit{Soft: uint64(value), Hard: uint64(value)}
		return
	}
	var sides limitSides
	d.structure(n, reflectOf(&sides), p)
	for _, side := range keysOf(reflect.TypeFor[limitSides]()) {
		if !d.given(p.key(side)) && !d.isBad(p.key(side)) {
			d.fault(n, p, "%s is missing: a limit has soft and hard, or is one value for both", side)
		}
	}
	*target = Limit{Soft: uint64(sides.Soft), Hard: uint64(sides.Hard)}
}

func (d *decoder) command(n *yaml.Node, target *Command, p path) {
	if n.Kind == yaml.SequenceNode {
		var words []string
		d.list(n, reflectOf(&words), p)
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
