package config

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"gopkg.in/yaml.v3"
)

// mostValues bounds what a file stands for once its aliases are followed.
const mostValues = 500_000

// mostFaults is how many are told; a file with more is not one of ours.
const mostFaults = 1000

// spot is where a key and its value stand in the file.
type spot struct {
	file       string
	key, value *yaml.Node
}

// decoder fills Go values from nodes, collecting faults instead of stopping, and remembers where each value stood.
type decoder struct {
	file     string   // the one that is being read
	defaults *written // what every service starts from; filled before the first one is read
	base     *Program // what the processes of the service that is being read start from
	faults   Faults
	said     map[Fault]bool  // an aliased fault is told once
	spots    map[string]spot // by path.id
	bad      map[string]bool // by path.id: values that have a fault already
	holdsBad map[string]bool // by path.id: what a bad value lies in
	values   int
}

func newDecoder(file string, defaults *written) *decoder {
	return &decoder{
		file:     file,
		defaults: defaults,
		said:     map[Fault]bool{},
		spots:    map[string]spot{},
		bad:      map[string]bool{},
		holdsBad: map[string]bool{},
	}
}

func reflectOf[T any](target *T) reflect.Value { return reflect.ValueOf(target).Elem() }

// fault reports what is wrong with the value at p, which stands at n.
func (d *decoder) fault(n *yaml.Node, p path, format string, args ...any) {
	d.markBad(p)
	d.add(n, p, fmt.Sprintf(format, args...))
}

func (d *decoder) add(n *yaml.Node, p path, message string) {
	d.addIn(d.file, n, p, message)
}

func (d *decoder) addIn(file string, n *yaml.Node, p path, message string) {
	f := Fault{File: file, Line: max(n.Line, 1), Column: max(n.Column, 1), Message: message}
	if d.said[f] {
		return
	}
	d.said[f] = true
	f.Key = p.String()
	d.faults = append(d.faults, f)
}

func (d *decoder) markBad(p path) {
	d.bad[p.id()] = true
	for i := range p {
		d.holdsBad[p[:i].id()] = true
	}
}

// full reports whether there has been too much already; what is left is then passed over.
func (d *decoder) full() bool {
	return d.values > mostValues || len(d.faults) >= mostFaults
}

// value reads n into v. What cannot be read leaves v as it was.
func (d *decoder) value(n *yaml.Node, v reflect.Value, p path) {
	if d.values++; d.full() {
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
	case *Limit:
		d.limit(n, target, p)
		return
	case *InheritEnv:
		d.inheritEnv(n, target, p)
		return
	case *time.Duration:
		d.duration(n, target, p)
		return
	case encoding.TextUnmarshaler:
		d.text(n, target, p)
		return
	case choice:
		d.choice(n, v, p)
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
	case reflect.String:
		if word, ok := d.scalar(n, p, "text"); ok {
			v.SetString(word)
		}
	case reflect.Int:
		d.integer(n, v, p)
	case reflect.Bool:
		d.boolean(n, v, p)
	default:
		panic("config: no rule reads a " + v.Type().String())
	}
}

func (d *decoder) pointer(n *yaml.Node, v reflect.Value, p path) {
	target := reflect.New(v.Type().Elem())
	if t, ok := target.Interface().(interface{ setDefaults() }); ok {
		t.setDefaults()
	}
	d.value(n, target.Elem(), p)
	if list := target.Elem(); list.Kind() == reflect.Slice && list.IsNil() {
		list.Set(reflect.MakeSlice(list.Type(), 0, 0)) // [] is no null, in JSON either
	}
	v.Set(target)
}

// structure reads a mapping whose keys are known.
func (d *decoder) structure(n *yaml.Node, v reflect.Value, p path) {
	if v.Type() == reflect.TypeFor[Auth]() && n.Kind == yaml.ScalarNode && !isNull(n) { // it may be the secret itself
		d.fault(n, p, "text where a mapping is expected: write {scheme: digest, file: ...} and put user:password into the file")
		return
	}
	pairs, ok := d.pairs(n, p)
	if !ok {
		return
	}
	if service, ok := v.Addr().Interface().(*written); ok {
		d.base = &service.Program // read before processes are
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
		}
	}
	for _, pair := range pairs {
		if _, unknown := given[pair.name]; unknown && !d.full() {
			d.unknown(pair, v.Type(), p)
		}
	}
}

// oneOfEach refuses two keys of one group, and lets the one that is given take the place of what the defaults said.
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
		if service, ok := item.Addr().Interface().(*written); ok {
			if v.MapIndex(name).IsValid() { // a file's own repetitions are told by pairs
				first := d.spots[at.id()]
				d.fault(pair.key, at, "defined twice: it is at %s:%d:%d too", first.file, first.key.Line, first.key.Column)
				continue
			}
			*service = d.defaults.clone()
		}
		d.keyed(pair, item, at)
		if service, ok := item.Addr().Interface().(*written); ok {
			d.inheritProcesses(service, at)
		}
		v.SetMapIndex(name, item)
	}
}

// inheritProcesses reads the processes of the defaults anew, for a service that has no program of its own: they start
// from what this service gives.
func (d *decoder) inheritProcesses(service *written, p path) {
	from, ok := d.spots[path{"defaults", "processes"}.id()]
	if !ok || d.given(p.key("command")) || d.given(p.key("processes")) {
		return
	}
	file := d.file
	d.file, d.base = from.file, &service.Program
	d.value(from.value, reflectOf(&service.Processes), p.key("processes"))
	d.file = file
}

func (d *decoder) list(n *yaml.Node, v reflect.Value, p path) {
	if n.Kind != yaml.SequenceNode {
		d.fault(n, p, "%s where a list is expected", kindOf(n))
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
			process.Program = d.base.inherited()
		}
		d.value(node, item, at)
		if isProcess && process.Oneshot && !d.given(at.key("ready").key("timeout")) {
			process.Ready.Timeout = 0
		}
		items = reflect.Append(items, item)
	}
	v.Set(items)
}

// scalar gives the literal text of a value: 010 stays 010, and yes stays yes.
func (d *decoder) scalar(n *yaml.Node, p path, want string) (string, bool) {
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

func (d *decoder) integer(n *yaml.Node, v reflect.Value, p path) {
	word, ok := d.scalar(n, p, "a number")
	if !ok {
		return
	}
	number, err := strconv.ParseInt(word, 10, 32)
	if err != nil {
		d.fault(n, p, "%q is not a whole number", shorten(word))
		return
	}
	v.SetInt(number)
}

func (d *decoder) boolean(n *yaml.Node, v reflect.Value, p path) {
	word, ok := d.scalar(n, p, "true or false")
	switch {
	case !ok:
	case word == "true" || word == "false":
		v.SetBool(word == "true")
	case slices.Contains([]string{"yes", "on", "True", "TRUE", "Yes", "On"}, word):
		d.fault(n, p, `%s must be true or false (did you mean "true"?)`, quoted(word))
	case slices.Contains([]string{"no", "off", "False", "FALSE", "No", "Off"}, word):
		d.fault(n, p, `%s must be true or false (did you mean "false"?)`, quoted(word))
	default:
		d.fault(n, p, "%s must be true or false%s", quoted(word), DidYouMean(word, []string{"true", "false"}))
	}
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
	d.boolean(n, reflectOf(&all), p)
	*target = nil
	if !all {
		*target = InheritEnv{}
	}
}

// limit reads one value for both sides, or {soft: ..., hard: ...}.
func (d *decoder) limit(n *yaml.Node, target *Limit, p path) {
	if n.Kind != yaml.MappingNode {
		var value limitValue
		d.text(n, &value, p)
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

func (d *decoder) duration(n *yaml.Node, target *time.Duration, p path) {
	word, ok := d.scalar(n, p, "a duration")
	if !ok {
		return
	}
	length, err := time.ParseDuration(word)
	if err == nil {
		*target = length
		return
	}
	if _, err := strconv.ParseFloat(word, 64); err == nil {
		d.fault(n, p, "%q has no unit: write %ss for seconds", shorten(word), shorten(word))
		return
	}
	d.fault(n, p, "%q is not a duration such as 500ms, 1.5s or 2m", shorten(word))
}

func (d *decoder) text(n *yaml.Node, target encoding.TextUnmarshaler, p path) {
	word, ok := d.scalar(n, p, "text")
	if !ok {
		return
	}
	if err := target.UnmarshalText([]byte(word)); err != nil {
		d.fault(n, p, "%v", err)
	}
}

func (d *decoder) choice(n *yaml.Node, v reflect.Value, p path) {
	words := v.Interface().(choice).choices()
	word, ok := d.scalar(n, p, oneOf(words))
	if !ok {
		return
	}
	if message := mustBeOneOf(word, words); message != "" {
		d.fault(n, p, "%s", message)
		return
	}
	v.SetString(word)
}

func (d *decoder) command(n *yaml.Node, target *Command, p path) {
	if n.Kind == yaml.SequenceNode {
		var words []string
		d.list(n, reflectOf(&words), p)
		*target = words
		return
	}
	line, ok := d.scalar(n, p, "a list of words or one string")
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
