package config

import (
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// nodeKey is the value of node: this node's name, or what differs on single nodes.
type nodeKey struct {
	name string              `yaml:"-"`
	each *yaml.Node          `yaml:"-"` // the mapping, until all that it overrides is read
	keys map[string]nodeKeys `yaml:"-"`
}

// nodeKeys are the keys of a node as a whole.
type nodeKeys struct {
	HTTP     HTTPServer  `yaml:"http" doc:"As http at the top of the file, for this node. The keys are merged."`
	Fencing  NodeFencing `yaml:"fencing" doc:"As fencing at the top of the file, for this node. The keys are merged."`
	Watchdog Watchdog    `yaml:"watchdog" doc:"As watchdog at the top of the file, for this node. The keys are merged."`
}

func (d *decoder) nodeKey(n *yaml.Node, target *nodeKey, p path) {
	if n.Kind == yaml.MappingNode {
		target.each = n
		return
	}
	target.name, _ = d.word(n, p, "a name, or a mapping of names to keys,")
}

// nodeKeys reads what differs on single nodes: it starts from what holds for all.
func (l *loader) nodeKeys() {
	if l.doc.Node.each == nil {
		return
	}
	at := path{"node"}
	l.doc.Node.keys = map[string]nodeKeys{}
	pairs, _ := l.pairs(l.doc.Node.each, at)
	for _, pair := range pairs {
		keys := nodeKeys{HTTP: l.doc.HTTP, Fencing: l.doc.Fencing, Watchdog: l.doc.Watchdog}
		l.keyed(pair, reflectOf(&keys), at.key(pair.name))
		l.doc.Node.keys[pair.name] = keys
	}
}

// check checks all that the files say, for all nodes, and leaves in doc what they say for the one that is wanted.
func (l *loader) check() (warnings []found) {
	l.nodeKeys()
	all := report{says: l.given}
	switch at := all.top("node"); {
	case at.given() && l.doc.Node.each == nil:
		l.doc.Config.Node = l.doc.Node.name
	case l.node != "":
		l.doc.Config.Node = l.node
	default:
		l.doc.Config.Node = hostname(at)
	}
	l.doc.check(&all)
	l.doc.Defaults.check(all.top("defaults"))
	l.place(all.found)
	told := map[string]bool{}
	for _, f := range all.found {
		told[f.keys[0].id()+f.message] = true
	}
	nodes := l.doc.nodes()
	l.nodes = nodes
	if l.doc.Node.name != "" {
		l.nodes = append(l.nodes, l.doc.Node.name)
	}
	named := l.node != "" || l.doc.Node.name != "" // else it may be the host of an operator, who checks a file for others
	if l.node == "" {
		l.node = l.doc.Config.Node
	}
	if other := alike(l.node, nodes); other != "" {
		all.top("node").warn("this node is %s, and what differs on single nodes is for %s: write the same name", quoted(l.node), quoted(other))
	}
	warnings = all.warnings
	for _, node := range nodes {
		one := report{says: l.given, on: node}
		l.doc.of(node).check(&one)
		again := func(f found) bool { // it lies in what the node does not override
			at, isOverride := everywhere(f.keys[0])
			return (!isOverride || !l.given(f.keys[0])) && told[at.id()+f.message]
		}
		l.place(slices.DeleteFunc(one.found, again))
		warnings = append(warnings, one.warnings...)
	}
	before := l.doc.Services
	l.doc = l.doc.of(l.node)
	for name, service := range l.doc.Services {
		others := l.otherCopies(name, before[name].Nodes)
		if len(others) == 0 || service.Replicated == nil {
			continue
		}
		r := *service.Replicated
		r.Others, service.Replicated = others, &r
		l.doc.Services[name] = service
		here, copies := report{says: l.given}, len(others)
		if r.Address != "" { // else it may be no node of these
			copies++
		}
		if why := r.DoubtfulPositions(copies); why != "" {
			here.top("services", name, "replicated", "positions_from").warn("%s", why)
		}
		if named && r.Address == "" {
			here.top("services", name, "nodes").warn("gives the addresses of other nodes' copies, and none for %s: "+
				"with the same file they do not follow the copy here", l.node)
		}
		warnings = append(warnings, here.warnings...)
	}
	return warnings
}

// nodes are those that have anything of their own.
func (doc document) nodes() []string {
	all := map[string]bool{}
	for name := range doc.Node.keys {
		all[name] = true
	}
	for _, service := range doc.Services {
		for name := range service.Nodes {
			all[name] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// of is what the document says for a node, with all overrides filled in.
func (doc document) of(node string) document {
	doc.Config.Node = node
	if keys, ok := doc.Node.keys[node]; ok {
		doc.HTTP, doc.Fencing, doc.Watchdog = keys.HTTP, keys.Fencing, keys.Watchdog
	}
	doc.Services = maps.Clone(doc.Services)
	for name, service := range doc.Services {
		if own, ok := service.Nodes[node]; ok {
			service.written = own
		}
		service.Nodes = nil
		doc.Services[name] = service
	}
	doc.Node.keys = nil
	return doc
}

func (n nodeKey) check(p place) {
	for _, name := range slices.Sorted(maps.Keys(n.keys)) {
		if message := nameFault(name); message != "" {
			p.key(name).keyFault(message)
		}
	}
}

// checkNodes checks the names for which a service has overrides.
func (doc document) checkNodes(p place, nodes map[string]written) {
	known := slices.Sorted(maps.Keys(doc.Node.keys))
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		at := p.key("nodes").key(name)
		if message := nameFault(name); message != "" {
			at.keyFault(message)
		}
		if other := alike(name, known); other != "" {
			at.warn("node: has no such node (did you mean %s?)", quoted(other))
		}
	}
}

// alike is a name that looks like the same node, as db-1 and DB1.example.com do; "": name is among them, or none does.
func alike(name string, names []string) (other string) {
	short := func(name string) string {
		name, _, _ = strings.Cut(strings.ToLower(name), ".")
		return strings.NewReplacer("-", "", "_", "").Replace(name)
	}
	for _, n := range names {
		if n == name {
			return ""
		}
		if short(n) == short(name) {
			other = n
		}
	}
	return other
}

// override is where p stands for one node, if the files say something of their own for it there.
func override(says func(path) bool, node string, p path) path {
	var own, rest path
	switch {
	case node == "" || len(p) == 0:
		return p
	case p[0] == "services" && len(p) > 1:
		own, rest = slices.Concat(p[:2], path{"nodes", node}), p[2:]
	default:
		own, rest = path{"node", node, p[0]}, p[1:]
	}
	if !says(own) {
		return p
	}
	return slices.Concat(own, rest)
}

// everywhere is the key that an override overrides, and whether p is one.
func everywhere(p path) (path, bool) {
	switch {
	case len(p) > 2 && p[0] == "node":
		return p[2:], true
	case len(p) > 4 && p[0] == "services" && p[2] == "nodes":
		return slices.Concat(p[:2], p[4:]), true
	}
	return p, false
}

// ours is where a key stands for the node whose config this is.
func (l *loader) ours(keys ...string) path { return override(l.given, l.node, keys) }

// NodeNameFault says why a node cannot have this name; "": it can.
func NodeNameFault(name string) string { return nameFault(name) }
