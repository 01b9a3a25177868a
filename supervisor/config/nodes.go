package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// nodeKey is the value of node: this node's name, or what differs on single nodes.
type nodeKey struct {
	name  string   `yaml:"-"`
	named []string `yaml:"-"` // the nodes of the mapping
}

// nodeKeys are the keys of a node as a whole.
type nodeKeys struct {
	HTTP     HTTPServer  `yaml:"http" doc:"As http at the top of the file, for this node. The keys are merged."`
	Fencing  NodeFencing `yaml:"fencing" doc:"As fencing at the top of the file, for this node. The keys are merged."`
	Watchdog Watchdog    `yaml:"watchdog" doc:"As watchdog at the top of the file, for this node. The keys are merged."`
}

func (d *decoder) nodeKey(at spot, target *nodeKey, p path) {
	n := follow(at.value)
	if n.Kind != yaml.MappingNode {
		target.name, _ = d.word(n, p, "a name, or a mapping of names to keys,")
		return
	}
	target.named = []string{}
	for name, spots := range d.keys([]spot{at}, p, nil) {
		d.spots[p.key(name).id()], d.named[name] = spots[0], true
		target.named = append(target.named, name)
	}
	slices.Sort(target.named)
}

// perNode is what a mapping of nodes gives for the one that counts.
func (d *decoder) perNode(at []spot, p path) []spot {
	if d.node == "" || len(at) == 0 || follow(at[0].value).Kind != yaml.MappingNode {
		return nil
	}
	return d.keys(at[:1], p, nil)[d.node]
}

// ofNode puts what the file gives for the node that counts above the rest.
func (d *decoder) ofNode(given map[string][]spot) {
	p := path{"node", d.node}
	own := d.perNode(given["node"], p[:1])
	if own == nil {
		return
	}
	d.spots[p.id()] = own[0]
	for name, spots := range d.keys(own, p, nil) {
		if !means[nodeKeys](name) {
			d.unknown(spots[0].key, reflect.TypeFor[nodeKeys](), p)
			continue
		}
		given[name] = inherit(spots, given[name])
	}
}

// check checks all that the files say, for all nodes, and leaves in doc what they say for the one that is wanted.
func (l *loader) check() (warnings Faults) {
	nodes, each := slices.Sorted(maps.Keys(l.named)), map[string]*decoder{}
	shared, all := l.decoder, report{where: l.positions, named: nodes}
	named := l.ownName(&all)
	for _, node := range append(slices.Clone(nodes), l.node) {
		each[node] = l.decode(node)
	}
	if other := alike(l.node, nodes); other != "" {
		all.top("node").warn("this node is %s, and what differs on single nodes is for %s: write the same name",
			quoted(l.node), quoted(other))
	} else if shared.doc.Node.name != "" && len(nodes) > 1 && !slices.Contains(nodes, l.node) {
		all.top("node").warn("the keys below nodes: are for other nodes alone (%s): if this is one of them, write that name",
			strings.Join(nodes, ", "))
	}
	for _, i := range l.unmatched {
		all.top("include").item(i).warn("no file matches %s", quoted(shared.doc.Include[i]))
	}
	all.asks = l.doc.Fencing.Agent != nil
	shared.doc.check(&all)
	shared.doc.Defaults.check(all.top("defaults"))
	shared.place(all.found)
	told := map[string]bool{}
	for _, f := range all.found {
		told[f.keys[0].id()+f.message] = true
	}
	for _, node := range nodes {
		of := each[node]
		one := report{where: of.positions, on: node, named: nodes}
		of.doc.check(&one)
		again := func(f found) bool { return !of.given(f.keys[0]) && told[f.keys[0].id()+f.message] } // it lies in what holds for all
		of.place(slices.DeleteFunc(one.found, again))
		warnings = append(warnings, of.doubts(one.warnings)...)
	}
	warnings = append(warnings, l.checkAcrossNodes(shared, &all, nodes, each, named)...)
	l.nodes = nodes
	if shared.doc.Node.name != "" {
		l.nodes = append(l.nodes, shared.doc.Node.name)
	}
	return append(warnings, shared.doubts(all.warnings)...)
}

// ownName settles which node counts, and reports whether its name was given. Else it may be the host of an operator, who checks a file for
// others.
func (l *loader) ownName(all *report) (named bool) {
	doc := &l.doc
	switch at := all.top("node"); {
	case at.given() && doc.Node.named == nil:
		doc.Config.Node = doc.Node.name
	case l.node != "":
		doc.Config.Node = l.node
	default:
		doc.Config.Node = hostname(at)
	}
	named = l.node != "" || doc.Node.name != ""
	if l.node == "" {
		l.node = doc.Config.Node
	}
	return named
}

// checkAcrossNodes checks what shows only in the settings of all nodes together. It gives the node that counts the addresses of the other
// copies.
func (l *loader) checkAcrossNodes(
	shared *decoder, all *report, nodes []string, each map[string]*decoder, named bool,
) (warnings Faults) {
	for name, service := range l.doc.Services {
		could := func(node string) bool { return each[node].doc.Services[name].Eligible }
		if len(nodes) > 1 && len(shared.doc.Services[name].Nodes) > 0 && !slices.ContainsFunc(nodes, could) && !(named && could(l.node)) {
			all.top("services", name, "nodes").warn("eligible is false on every node that this file names: none of them runs the service")
		}
		l.checkFailback(all.top("services", name), shared.doc.Services[name], nodes, each)
		others := map[string]string{} // one address that is for all nodes says nothing of another node: each may have a file of its own
		taken, at := map[string]string{}, path{"services", name, "replicated", "address"}
		for _, node := range nodes {
			r := each[node].doc.Services[name].Replicated
			_, differs := shared.doc.Services[name].Nodes[node]
			own := differs && each[node].given(at)
			if r == nil || r.Address == "" || !own && l.doc.Node.named == nil {
				continue
			}
			if own && node != l.node {
				others[node] = r.Address
			}
			if other := taken[r.Address]; other != "" {
				warnings = append(warnings, each[node].doubts([]found{{keys: []path{at}, message: fmt.Sprintf(
					"%s is the copy of %s, too: give each node's copy an address or a port of its own", r.Address, other)}})...)
				continue
			}
			taken[r.Address] = node
		}
		if len(others) == 0 || service.Replicated == nil {
			continue
		}
		service.Replicated.Others = others
		copies := len(others)
		if service.Replicated.Address != "" { // else it may be no node of these
			copies++
		}
		if why := service.Replicated.DoubtfulPositions(copies); why != "" {
			warnings = append(warnings,
				l.doubts([]found{{keys: []path{{"services", name, "replicated", "positions_from"}}, message: why}})...)
		}
		if named && service.Replicated.Address == "" {
			all.top("services", name, "nodes").warn("gives the addresses of other nodes' copies, and none for %s: "+
				"with the same file they do not follow the copy here", l.node)
		}
	}
	return warnings
}

// checkFailback warns where no node is preferred. Without a mapping of nodes there may be others, and each may have a file of its own.
func (l *loader) checkFailback(p place, s entry, nodes []string, each map[string]*decoder) {
	var priorities []int
	for _, node := range nodes {
		if one := each[node].doc.Services[p.keys[0][1]]; one.Eligible {
			priorities = append(priorities, one.Priority)
		}
	}
	if l.doc.Node.named == nil {
		priorities = append(priorities, s.Priority)
	}
	slices.Sort(priorities)
	known := l.doc.Node.named != nil || s.Priority == 0 && !p.key("priority").given()
	if failback := p.key("failback"); s.Failback && s.Eligible && known && failback.given() && len(slices.Compact(priorities)) == 1 {
		failback.noEffect("a node of higher priority", "nodes: {NODE: {priority: 10}}")
	}
}

func (n nodeKey) check(p place) {
	for _, name := range n.named {
		if message := nameFault(name); message != "" {
			p.key(name).keyFault(message)
		}
	}
}

// checkNodes checks the names for which a service has overrides.
func (doc document) checkNodes(p place, nodes map[string]written) {
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		at := p.key("nodes").key(name)
		if message := nameFault(name); message != "" {
			at.keyFault(message)
		}
		if other := alike(name, doc.Node.named); other != "" {
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

// NodeNameFault says why a node cannot have this name; "": it can.
func NodeNameFault(name string) string { return nameFault(name) }
