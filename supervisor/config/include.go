package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	pathpkg "path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"gopkg.in/yaml.v3"
)

// Files is what a configuration was read from, as absolute paths. To see any of it change, the directories have to be watched that these
// are in. One that is not there has to be waited for in the nearest one above it that is.
type Files struct {
	Config []string // the file itself and those that it includes, there or not
	Env    []string // each service's env_file; read when a process starts, not when the configuration is read
	Dirs   []string // where a glob found files, or may find some

	services map[string][]string // of each file, as faults name it, that gives some, or says by services: {} that it gives none
}

// Emptied fails if a file that gave services gives none now and does not say so, or is gone, and some of them are in no other file: as
// after a write to a full disk. A file that lost only some of its services is taken as it is.
func (f Files) Emptied(before Files) error {
	var now []string
	for _, names := range f.services {
		now = append(now, names...)
	}
	for _, file := range slices.Sorted(maps.Keys(before.services)) {
		lost := slices.DeleteFunc(slices.Clone(before.services[file]), func(name string) bool { return slices.Contains(now, name) })
		if _, says := f.services[file]; !says && len(lost) > 0 {
			slices.Sort(lost)
			return fmt.Errorf("%s gives no services any more (%s): nothing is stopped; if that is meant, "+
				"order `systemctl reload understudy`, or write `services: {}` into the file", file, strings.Join(lost, ", "))
		}
	}
	return nil
}

// given notes what the files give, of which some say that they give none.
func (f *Files) given(services map[string]entry, at func(name string) string) {
	for name := range services {
		file := at(name)
		f.services[file] = append(f.services[file], name)
	}
}

// says notes a file that says what it gives, none of them included.
func (f *Files) says(file string, root *yaml.Node) {
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == "services" && !isNull(follow(root.Content[i+1])) {
			f.services[file] = nil
		}
	}
}

func (f *Files) env(services map[string]entry) {
	for _, w := range services {
		for _, p := range w.service().Processes {
			if p.EnvFile != "" {
				f.Env = append(f.Env, p.EnvFile)
			}
		}
	}
	slices.Sort(f.Env)
	f.Env = slices.Compact(f.Env)
}

// include reads the files that the main file includes. They include none themselves.
func (l *loader) include() {
	for i, pattern := range l.doc.Include {
		at := path{"include"}.item(i)
		if pattern == "" {
			l.fault(l.spots[at.id()].value, at, "is empty: name a file, or write a glob such as conf.d/*.yaml")
			continue
		}
		names, err := l.expand(pattern)
		if err != nil {
			l.fault(l.spots[at.id()].value, at, "%v", err)
			continue
		}
		for _, name := range names {
			l.one(at, pattern, name)
		}
		if len(names) == 0 && !l.empty {
			l.unmatched = append(l.unmatched, i)
		}
	}
	if len(l.parts) > 1 {
		l.decode("")
	}
}

// one reads one included file; a fault in opening it is one of the main file's.
func (l *loader) one(at path, pattern, name string) {
	l.file = l.name
	abs, node := absolute(name), l.spots[at.id()].value
	if slices.Contains(l.files.Config, abs) { // two globs may find one file
		if abs == l.files.Config[0] && !isGlob(pattern) {
			l.fault(node, at, "%s is this file itself", quoted(pattern))
		}
		return
	}
	l.files.Config = append(l.files.Config, abs)
	src, err := l.disk.read(name)
	if err != nil {
		l.fault(node, at, "%v", unread(name+" ", err))
		return
	}
	l.order = append(l.order, name)
	l.sum.Write(src)
	root, fault := parse(src)
	l.file = name
	switch {
	case fault != nil:
		fault.File, l.cut = name, true
		l.faults = append(l.faults, *fault)
	case root == nil:
	case root.Kind == yaml.MappingNode:
		l.files.says(name, root)
		l.parts = append(l.parts, parsed{name, root})
	case root.Kind == yaml.ScalarNode: // which may be a secret
		l.fault(root, nil, "text where the key services: is expected")
	default:
		l.fault(root, nil, "%s where the key services: is expected", kindOf(root))
	}
	l.file = l.name
}

// expand lists the files that a glob finds, sorted; a name without wildcards stands for itself. As in a shell, what is
// hidden is found only by a pattern that starts with a dot.
func (l *loader) expand(pattern string) ([]string, error) {
	base := filepath.Dir(l.name)
	if filepath.IsAbs(pattern) {
		base = "/"
	}
	if !isGlob(pattern) {
		return []string{filepath.Join(base, pattern)}, nil
	}
	if _, err := pathpkg.Match(pattern, ""); err != nil {
		return nil, fmt.Errorf("%s: is not a glob: a [ has no ], or a \\ quotes nothing", quoted(pattern))
	}
	parts := strings.Split(strings.Trim(filepath.Clean(pattern), "/"), "/")
	for ; !isGlob(parts[0]); parts = parts[1:] {
		base = filepath.Join(base, parts[0])
	}
	found := []string{base}
	l.empty = false
	for i, part := range parts {
		var next []string
		for _, dir := range found {
			list, err := l.disk.list(dir)
			if errors.Is(err, syscall.ENOTDIR) {
				continue
			}
			l.files.Dirs = append(l.files.Dirs, absolute(dir)) // also of one that may be read at last
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, unread(dir+" ", err)
			}
			l.empty = err == nil && len(list) == 0
			for _, entry := range list {
				if matches(part, entry, i == len(parts)-1) {
					next = append(next, filepath.Join(dir, entry.Name()))
				}
			}
		}
		found = next
	}
	slices.Sort(found)
	return found, nil
}

func matches(part string, entry fs.DirEntry, last bool) bool {
	name := entry.Name()
	if ok, _ := pathpkg.Match(part, name); !ok || strings.HasPrefix(name, ".") && !strings.HasPrefix(part, ".") {
		return false
	}
	return !last || !entry.IsDir()
}

func isGlob(pattern string) bool { return strings.ContainsAny(pattern, `*?[\`) }
