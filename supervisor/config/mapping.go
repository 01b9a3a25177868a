package config

import (
	"reflect"
	"slices"

	"gopkg.in/yaml.v3"
)

// pair is one key of a mapping with its value.
type pair struct {
	name       string
	key, value *yaml.Node
}

// unknown reports a key that means nothing where it stands.
func (d *decoder) unknown(pair pair, t reflect.Type, p path) {
	at := p.key(pair.name)
	known := keysOf(t)
	for _, name := range known {
		if !d.given(p.key(name)) && DidYouMean(pair.name, []string{name}) != "" {
			d.markBad(p.key(name)) // not missing, only misspelt
		}
	}
	hint := DidYouMean(pair.name, known)
	isService := t == reflect.TypeFor[written]() || t == reflect.TypeFor[entry]()
	switch {
	case hint != "":
	case t == reflect.TypeFor[document]() && means[entry](pair.name):
		hint = ": it belongs to a service, or under defaults:"
	case t == reflect.TypeFor[fragment]() && means[document](pair.name):
		hint = ": an included file holds services: and nothing else"
	case t == reflect.TypeFor[fragment]() && means[entry](pair.name):
		hint = ": it belongs to a service"
	case t == reflect.TypeFor[nodeKeys]() && means[entry](pair.name):
		hint = ": it belongs to a service, under services.NAME.nodes." + p[len(p)-1]
	case t == reflect.TypeFor[nodeKeys]() && means[document](pair.name):
		hint = ": it is the same for all nodes, at the top of the file"
	case t == reflect.TypeFor[written]() && means[entry](pair.name):
		hint = ": it belongs to a single service"
	case isService && means[document](pair.name):
		hint = ": it belongs to the top of the file"
	case t == reflect.TypeFor[Process]() && means[entry](pair.name):
		hint = ": it belongs to the service as a whole"
	case isService && means[Process](pair.name):
		hint = ": it belongs to an item of processes:"
	}
	d.fault(pair.key, at, "unknown key%s", hint)
}

// means reports whether the name is a key of a T.
func means[T any](name string) bool {
	return slices.Contains(keysOf(reflect.TypeFor[T]()), name)
}

// pairs lists a mapping's keys, its own first and then those it merges; a key that was given before is left out.
func (d *decoder) pairs(n *yaml.Node, p path) ([]pair, bool) {
	if isNull(n) {
		return nil, true
	}
	if n.Kind != yaml.MappingNode {
		d.fault(n, p, "%s where a mapping (key: value) is expected%s", kindOf(n), mappingForm(p))
		return nil, false
	}
	d.values += len(n.Content) / 2
	first := map[string]*yaml.Node{}
	var own []pair
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := follow(n.Content[i]), n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode:
			d.add(key, p, kindOf(key)+" where a key is expected")
		case key.Tag == "!!merge":
			merged = append(merged, value)
		case first[key.Value] != nil:
			d.fault(key, p.key(key.Value), "repeated: it was given on line %d", first[key.Value].Line)
		default:
			first[key.Value] = key
			own = append(own, pair{name: key.Value, key: key, value: value})
		}
	}
	for _, source := range merged {
		own = d.merge(own, source, first, p, 0)
	}
	return own, true
}

// merge adds what `<<: source` brings in: a mapping or a list of them, in which the earlier ones win.
func (d *decoder) merge(own []pair, source *yaml.Node, first map[string]*yaml.Node, p path, depth int) []pair {
	const deepest = 10 // an alias may lead back to the mapping that merges it
	source = follow(source)
	d.values++
	if depth > deepest || d.full() {
		d.fault(source, p, "mappings merge one another too deeply")
		return own
	}
	switch source.Kind {
	case yaml.SequenceNode:
		for _, item := range source.Content {
			own = d.merge(own, item, first, p, depth+1)
		}
	case yaml.MappingNode:
		var merged []*yaml.Node
		for i := 0; i+1 < len(source.Content); i += 2 {
			key, value := follow(source.Content[i]), source.Content[i+1]
			d.values++
			switch {
			case key.Kind != yaml.ScalarNode || first[key.Value] != nil:
			case key.Tag == "!!merge":
				merged = append(merged, value)
			default:
				first[key.Value] = key
				own = append(own, pair{name: key.Value, key: key, value: value})
			}
		}
		for _, item := range merged {
			own = d.merge(own, item, first, p, depth+1)
		}
	default:
		d.fault(source, p, "%s after <<: where a mapping is expected", kindOf(source))
	}
	return own
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

// mappingForm shows how a mapping is written, for the keys that are often written otherwise.
func mappingForm(p path) string {
	switch {
	case len(p) == 0:
		return ""
	case len(p) == 2 && p[0] == "services" && means[entry](p[1]):
		return ": indent it below a service"
	}
	forms := map[string]string{
		"zookeeper": `{servers: ["zk1:2181"]}`, "services": "{NAME: {command: [PROGRAM, ARGUMENT]}}", "env": "{NAME: VALUE}",
		"http": `{listen: "127.0.0.1:8437"}`, "log": "{file: /var/log/understudy/NAME.log}",
	}
	if form := forms[p[len(p)-1]]; form != "" {
		return ": write " + form
	}
	return ""
}

// listForm shows how what stands in a list's place is written as one.
func listForm(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return `: write [{KEY: VALUE}], or "- " before each item`
	case n.Kind == yaml.ScalarNode && !isNull(n):
		return ": write [" + quoted(n.Value) + "]"
	}
	return ""
}
