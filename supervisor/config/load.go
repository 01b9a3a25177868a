package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// whatToWrite is the fault of an empty file.
const whatToWrite = "is empty: write at least\n" +
	"    zookeeper: {servers: [\"zk1:2181\", \"zk2:2181\", \"zk3:2181\"]}\n" +
	"    services: {NAME: {command: [PROGRAM, ARGUMENT]}}"

// LoadResult is what became of reading a file and all that it includes.
type LoadResult struct {
	Config   *Config // nil when there are faults
	Faults   Faults  // in the order of the files, and in each of its lines
	Warnings Faults  // what is allowed and probably not meant
	Sum      string  // of the contents of all files: the same on every node that runs the same ones
	Files    Files   // known whether there are faults or not, so that a repair can be waited for

	loader *loader // where everything stands
}

// Err is the faults, or nil when there are none.
func (r LoadResult) Err() error {
	if len(r.Faults) == 0 {
		return nil
	}
	return r.Faults
}

// Read reads what a configuration says for a node ("": the one that it names, or this host), and reports all faults that show
// without looking at the files and users that it names, those of other nodes too. Root reads no file that others can change.
func Read(name, node string) LoadResult { return read(name, node, host) }

// ReadElsewhere is Read for another machine, whoever can change the files: nothing may be done here as they say.
func ReadElsewhere(name, node string) LoadResult {
	return read(name, node, anyones)
}

func read(name, node string, disk disk) LoadResult {
	l := newLoader(name, disk)
	l.node = node
	src, err := disk.read(name)
	if err != nil {
		return LoadResult{Faults: Faults{{File: name, Message: unread("", err).Error()}}, Files: l.files}
	}
	return l.load(src)
}

// Nodes are those that the files name, none of them twice.
func (r LoadResult) Nodes() []string {
	return slices.Compact(slices.Sorted(slices.Values(r.loader.nodes)))
}

// loader reads one file and those that it includes.
type loader struct {
	*decoder  // the newest
	disk      disk
	name      string
	node      string // whose config is wanted; "": the file says it
	sum       hash.Hash
	parts     []parsed
	files     Files
	order     []string // the files as faults name them
	nodes     []string // that the files name
	empty     bool     // the folder that was looked into last is there, and may be filled later
	unmatched []int    // the globs of include that find nothing, by their index
	cut       bool     // what an included file gives is not known
}

// parsed is a file.
type parsed struct {
	name string
	root *yaml.Node // a mapping
}

func newLoader(name string, disk disk) *loader {
	return &loader{
		disk: disk, name: name, sum: sha256.New(),
		files:   Files{Config: []string{absolute(name)}, services: map[string][]string{}},
		order:   []string{name},
		decoder: &decoder{positions: newPositions(&told{file: name, said: map[Fault]bool{}}), named: map[string]bool{}},
	}
}

// decode reads what the files say for a node; "": for all.
func (l *loader) decode(node string) *decoder {
	l.values += l.read
	l.decoder = &decoder{
		positions: newPositions(l.told), node: node, named: l.named, start: writtenDefaults(),
		doc: document{Config: *Default(), Defaults: writtenDefaults()},
	}
	l.doc.Config.Node = node
	for _, p := range l.parts {
		at, f := []spot{{file: p.name, value: p.root, own: true}}, fragment{Services: maps.Clone(l.doc.Services)}
		if p.name == l.name {
			l.value(at, reflectOf(&l.doc), nil)
			continue
		}
		l.value(at, reflectOf(&f), nil)
		l.doc.Services = f.Services
	}
	l.file = l.name
	return l.decoder
}

func (l *loader) load(src []byte) LoadResult {
	root, fault := parse(src)
	switch {
	case fault != nil:
		fault.File = l.name
		return LoadResult{Faults: Faults{*fault}, Files: l.files}
	case root == nil:
		return LoadResult{Faults: Faults{{File: l.name, Line: 1, Column: 1, Message: whatToWrite}}, Files: l.files}
	case strange(root) || root.Kind != yaml.MappingNode:
		what := "this is no config of Understudy:"
		if !strange(root) {
			what = kindOf(root) + " where"
		}
		l.fault(root, nil, "%s keys such as zookeeper: and services: are expected", what)
		return LoadResult{Faults: l.faults, Files: l.files}
	}
	l.sum.Write(src)
	l.files.says(l.name, root)
	l.parts = []parsed{{l.name, root}}
	l.decode("")
	l.include()
	given, at := l.doc.Services, l.positions
	warnings := l.check()
	if l.cut {
		l.faults = slices.DeleteFunc(l.faults, func(f Fault) bool { return f.Message == nothingToRun })
	}
	l.tooMuch()
	l.files.env(l.doc.Services)
	l.files.given(given, func(name string) string { return at.spots[path{"services", name}.id()].file })
	r := LoadResult{Faults: l.sorted(l.faults), Sum: hex.EncodeToString(l.sum.Sum(nil)[:8]), Files: l.files, loader: l}
	if len(r.Faults) > 0 {
		return r
	}
	r.Config = l.doc.config()
	r.Warnings = l.sorted(warnings)
	return r
}

// strange reports whether a file has no key that is ours, or near one: it may be a secret, of which no message shows anything.
func strange(root *yaml.Node) bool {
	if root.Kind != yaml.MappingNode {
		return root.Kind == yaml.ScalarNode
	}
	for i := 0; i < len(root.Content); i += 2 {
		if key := root.Content[i].Value; means[entry](key) || DidYouMean(key, keysOf(reflect.TypeFor[document]())) != "" {
			return false
		}
	}
	return len(root.Content) > 0
}

// sorted puts faults into the order in which a user meets them.
func (l *loader) sorted(faults Faults) Faults {
	slices.SortStableFunc(faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(slices.Index(l.order, a.File), slices.Index(l.order, b.File)), a.compare(b))
	})
	const hidden = `: \u00a0 is a no-break space: type a plain one`
	for i, f := range faults {
		if text := f.Key + f.Message; strings.Contains(text, `\u00a0`) && !strings.Contains(text, hidden) {
			faults[i].Message += hidden
		}
	}
	return slices.Compact(faults)
}

// tooMuch reports that a part of the file was skipped.
func (d *decoder) tooMuch() {
	switch {
	case d.skipped:
		d.add(&yaml.Node{}, nil, "the file expands to too many values (does an alias repeat aliases?)")
	case len(d.faults) >= mostFaults:
		d.add(&yaml.Node{}, nil, "more than "+strconv.Itoa(mostFaults)+" errors: the rest of the file was not checked")
	}
}

func absolute(name string) string {
	if abs, err := filepath.Abs(name); err == nil {
		return abs
	}
	return name
}
