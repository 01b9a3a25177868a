package config

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// unknown reports a key that means nothing where it stands.
func (d *decoder) unknown(at *yaml.Node, t reflect.Type, p path) {
	key := at.Value
	known := keysOf(t)
	for _, name := range known {
		if !d.given(p.key(name)) && DidYouMean(key, []string{name}) != "" {
			d.markBad(p.key(name)) // not missing, only misspelt
		}
	}
	hint := DidYouMean(key, known)
	isService := t == reflect.TypeFor[written]() || t == reflect.TypeFor[entry]()
	switch {
	case isService && key == "replicas":
		hint = ": Understudy runs one copy of the program, and more nodes give it more standbys"
	case hint != "":
	case t == reflect.TypeFor[document]() && means[entry](key):
		hint = ": it belongs to a service, or under defaults:"
	case t == reflect.TypeFor[fragment]() && means[document](key):
		hint = ": an included file holds services: and nothing else"
	case t == reflect.TypeFor[fragment]() && means[entry](key):
		hint = ": it belongs to a service"
	case t == reflect.TypeFor[nodeKeys]() && means[entry](key):
		hint = ": it belongs to a service, under services.NAME.nodes." + p[len(p)-1]
	case t == reflect.TypeFor[nodeKeys]() && means[document](key):
		hint = ": it is the same for all nodes, at the top of the file"
	case t == reflect.TypeFor[written]() && means[entry](key):
		hint = ": it belongs to a single service"
	case isService && means[document](key):
		hint = ": it belongs to the top of the file"
	case t == reflect.TypeFor[Process]() && means[entry](key):
		hint = ": it belongs to the service as a whole"
	case isService && means[Process](key):
		hint = ": it belongs to an item of processes:"
	case t == reflect.TypeFor[NodeFencing]() && means[Fencing](key):
		hint = ": it belongs to the fencing of a service, or of defaults"
	case t == reflect.TypeFor[Fencing]() && means[NodeFencing](key):
		hint = ": it belongs to fencing at the top of the file"
	default:
		hint = belongs(key, t)
		if hint == "" && isService {
			hint = belongs(key, reflect.TypeFor[document]())
		}
	}
	const few = 8
	if hint == "" && len(known) <= few {
		hint = ": " + oneOf(known) + " can stand here"
	}
	d.fault(at, p.key(key), "unknown key%s", hint)
}

// belongs names the keys of a mapping below which a key, or what other tools call so, may stand.
func belongs(key string, t reflect.Type) string {
	key = cmp.Or(synonyms[key], key)
	var above []string
	for _, f := range fieldsOf(t) {
		below := t.FieldByIndex(f.index).Type
		if below.Kind() == reflect.Pointer {
			below = below.Elem()
		}
		if below.Kind() == reflect.Struct && slices.Contains(keysOf(below), key) {
			above = append(above, f.name)
		}
	}
	if above == nil {
		return ""
	}
	return ": " + key + " belongs to " + oneOf(above)
}

// means reports whether the name is a key of a T.
func means[T any](name string) bool {
	return slices.Contains(keysOf(reflect.TypeFor[T]()), name)
}

// pairs are a mapping's keys, its own and then those it merges; a key that was given before is left out.
func (d *decoder) pairs(from spot, p path) map[string]spot {
	n := follow(from.value)
	if isNull(n) {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		d.fault(n, p, "%s where a mapping (key: value) is expected%s", kindOf(n), mappingForm(n.Value, from.at))
		return nil
	}
	d.read += len(n.Content) / 2
	own := map[string]spot{}
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := follow(n.Content[i]), n.Content[i+1]
		first, twice := own[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode:
			message := kindOf(key) + " where a key is expected"
			if key.Kind == yaml.MappingNode {
				message = "{ } where a key is expected: was a template's {{ }} not filled in?"
			}
			d.add(key, p, message)
		case key.Tag == "!!merge":
			merged = append(merged, value)
		case twice:
			d.fault(key, p.key(key.Value), "repeated: it was given on line %d", first.key.Line)
		default:
			own[key.Value] = from.with(key, value)
		}
	}
	for _, source := range merged {
		d.merge(own, from, source, p, 0)
	}
	return own
}

// merge adds what `<<: source` brings in: a mapping or a list of them, in which the earlier ones win.
func (d *decoder) merge(own map[string]spot, from spot, source *yaml.Node, p path, depth int) {
	const deepest = 10 // an alias may lead back to the mapping that merges it
	source = follow(source)
	d.read++
	if depth > deepest || d.full() {
		d.fault(source, p, "mappings merge one another too deeply")
		return
	}
	switch source.Kind {
	case yaml.SequenceNode:
		for _, item := range source.Content {
			d.merge(own, from, item, p, depth+1)
		}
	case yaml.MappingNode:
		var merged []*yaml.Node
		for i := 0; i+1 < len(source.Content); i += 2 {
			key, value := follow(source.Content[i]), source.Content[i+1]
			d.read++
			_, given := own[key.Value]
			switch {
			case key.Kind != yaml.ScalarNode || given:
			case key.Tag == "!!merge":
				merged = append(merged, value)
			default:
				own[key.Value] = from.with(key, value)
			}
		}
		for _, item := range merged {
			d.merge(own, from, item, p, depth+1)
		}
	default:
		d.fault(source, p, "%s after <<: where a mapping is expected", kindOf(source))
	}
}

// follow gives what an alias stands for.
func follow(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool {
	n = follow(n)
	return n.Kind == yaml.ScalarNode && n.Tag == "!!null" && n.Style&yaml.TaggedStyle == 0
}

func kindOf(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case isNull(n):
		return "nothing"
	}
	return "the value " + quoted(n.Value)
}

// mappingForm shows how a mapping is written, for the keys that are often written otherwise, and in whose place a value stands.
func mappingForm(value string, p path) string {
	switch {
	case len(p) == 0:
		return ""
	case len(p) == 2 && p[0] == "services" && means[entry](p[1]):
		return ": indent it below a service"
	case len(p) == 2 && p[0] == "services" && noSpace.MatchString(value):
		return ": write a space after the colon"
	case len(p) == 2 && p[0] == "services":
		return ": write {KEY: VALUE}, such as {command: [PROGRAM, ARGUMENT]}"
	case len(p) > 1 && p[len(p)-2] == "http" && p[len(p)-1] == "tls":
		return ": write {cert_file: FILE, key_file: FILE}"
	case len(p) == 1 && p[0] == "log":
		return ": write {level: info}"
	case len(p) == 4 && p[2] == "nodes":
		return ": write {KEY: VALUE}, such as {priority: 20}"
	case strings.Contains(value, "://") && slices.Contains([]string{"ready", "health", "promote", "demote"}, p[len(p)-1]):
		return ": write {http: " + quoted(value) + "}"
	}
	forms := map[string]string{
		"zookeeper": `{servers: ["zk1:2181"]}`, "services": "{NAME: {command: [PROGRAM, ARGUMENT]}}", "env": "{NAME: VALUE}",
		"http": `{listen: "127.0.0.1:8437"}`, "log": "{file: /var/log/understudy/NAME.log}",
		"restart": "{policy: on-failure}", "ready": `{tcp: "127.0.0.1:PORT"}`, "health": "{exec: [PROGRAM, ARGUMENT]}",
		"precheck": "{exec: [PROGRAM, ARGUMENT]}", "moves": "{max: 5, within: 10m}", "nodes": "{NODE: {priority: 20}}",
		"warm": "{promote: {signal: USR1}}", "tls": "{ca_file: FILE}", "capabilities": "{ambient: [CAP_NET_BIND_SERVICE]}",
		"promote": "{signal: USR1}", "notify": "{exec: [PROGRAM, ARGUMENT]}", "watchdog": "{mode: automatic}",
	}
	policy := slices.Contains(RestartOnFailure.choices(), value)
	if form := forms[p[len(p)-1]]; form == forms["restart"] && policy {
		return ": write {policy: " + value + "}"
	} else if form != "" {
		return ": write " + form
	}
	return ""
}

// listForm shows how what stands in a list's place is written as one, whose items are of a type.
func listForm(n *yaml.Node, item reflect.Type, p path) string {
	mappings := item.Kind() == reflect.Struct
	forms := map[string]string{"include": `["conf.d/*.yaml"]`, "servers": `["zk1:2181", "zk2:2181"]`}
	switch key := p[len(p)-1]; {
	case n.Kind == yaml.MappingNode && mappings:
		return `: write [{KEY: VALUE}], or "- " before each item`
	case n.Kind == yaml.MappingNode:
		return ": write " + cmp.Or(forms[key], "[VALUE, VALUE]")
	case n.Kind != yaml.ScalarNode || isNull(n) || n.Value == "":
		return ""
	case mappings && n.Value == "agent" && slices.Contains(keysOf(item), "agent"):
		return ": write [{agent: {}}]" // the only key that can have nothing in it
	case mappings && slices.Contains(keysOf(item), n.Value):
		return ": write [{" + n.Value + ": {KEY: VALUE}}]"
	case item == reflect.TypeFor[Process]():
		return ": write [{name: NAME, command: PROGRAM}]"
	case mappings:
		return ": write [{KEY: VALUE}]"
	}
	var words []string
	for _, word := range strings.FieldsFunc(n.Value, func(r rune) bool { return r == ',' || r == ' ' }) {
		words = append(words, quoted(word))
	}
	return ": write [" + strings.Join(words, ", ") + "]"
}
