// Package unitfile reads systemd's unit files: what an existing unit runs, and how, becomes a service of a config.
package unitfile

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// folders are where systemd looks for units; an earlier one wins.
var folders = []string{
	"/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system",
}

// SystemdUnit is a service unit with its drop-ins.
type SystemdUnit struct {
	Name     string   // postgresql@15-main.service
	Files    []string // it was read from these
	settings []setting
	root     string // "" for this machine's own
}

type setting struct{ section, key, value string }

// Load finds a unit below root, which is "" for this machine's own. A name with a slash is a file.
func Load(root, name string) (*SystemdUnit, error) {
	if strings.Contains(name, "/") {
		if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s is not a regular file", name)
		}
		u := &SystemdUnit{Name: filepath.Base(name), root: root}
		return u, errors.Join(u.read(name), u.isTemplate())
	}
	if kind := filepath.Ext(name); kind != ".service" {
		if slices.Contains([]string{".socket", ".timer", ".target", ".mount", ".path"}, kind) {
			return nil, fmt.Errorf("%s is not a service: only units that end in .service run a program", name)
		}
		name += ".service"
	}
	u := &SystemdUnit{Name: name, root: root}
	if err := u.isTemplate(); err != nil {
		return nil, err
	}
	file, err := u.find(root)
	if err != nil {
		return nil, err
	}
	if err := u.read(file); err != nil {
		return nil, err
	}
	for _, file := range u.dropIns(root) {
		if err := u.read(file); err != nil {
			return nil, err
		}
	}
	return u, nil
}

// template is postgresql@.service for postgresql@15-main.service, and "" for a unit without an instance.
func (u *SystemdUnit) template() string {
	if prefix, _, instance := strings.Cut(u.Name, "@"); instance {
		return prefix + "@.service"
	}
	return ""
}

// isTemplate refuses a template, which runs nothing without the name of an instance.
func (u *SystemdUnit) isTemplate() error {
	if u.Name != u.template() {
		return nil
	}
	return fmt.Errorf("%s is a template: name one of its units, as %sNAME", u.Name, strings.TrimSuffix(u.Name, ".service"))
}

func (u *SystemdUnit) find(root string) (string, error) {
	for _, name := range []string{u.Name, u.template()} {
		for _, dir := range folders {
			file := filepath.Join(root, dir, name)
			to, err := os.Readlink(file)
			switch {
			case name == "":
			case err == nil && to == "/dev/null":
				return "", fmt.Errorf("%s is masked by %s: name the file of the unit itself, as in /lib/systemd/system/%s",
					u.Name, file, name)
			case err == nil && name == u.Name && filepath.Ext(to) == ".service": // an alias
				u.Name = filepath.Base(to)
				return u.find(root)
			case err == nil || !errors.Is(err, fs.ErrNotExist):
				return file, nil
			}
		}
	}
	return "", fmt.Errorf("there is no unit %s in %s: `systemctl list-unit-files --type=service` lists what there is",
		u.Name, strings.Join(folders, ", "))
}

// dropIns are the files that change a unit, in the order in which systemd reads them: by name, and of one name that in the earliest folder.
func (u *SystemdUnit) dropIns(root string) []string {
	byName := map[string]string{}
	for _, of := range []string{u.Name, u.template(), "service"} {
		for _, dir := range folders {
			files, _ := filepath.Glob(filepath.Join(root, dir, of+".d", "*.conf")) // the pattern is well formed
			for _, file := range files {
				if _, taken := byName[filepath.Base(file)]; of != "" && !taken {
					byName[filepath.Base(file)] = file
				}
			}
		}
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		list = append(list, byName[name])
	}
	return list
}

func (u *SystemdUnit) read(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	u.Files = append(u.Files, file)
	section, carried := "", ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";"):
			continue // also between continued lines
		case strings.HasSuffix(line, `\`):
			carried += strings.TrimSuffix(line, `\`) + " "
			continue
		}
		line, carried = carried+line, ""
		if strings.HasPrefix(line, "[") {
			section = strings.Trim(line, "[]")
			continue
		}
		if key, value, ok := strings.Cut(line, "="); ok {
			u.settings = append(u.settings, setting{section, strings.TrimSpace(key), strings.TrimSpace(value)})
		}
	}
	return nil
}

// list is every value of a key of [Service]; an empty one takes those before it back.
func (u *SystemdUnit) list(key string) []string { return u.of("Service", key) }

// of is list of any section.
func (u *SystemdUnit) of(section, key string) (all []string) {
	for _, s := range u.settings {
		switch {
		case s.section != section || s.key != key:
		case s.value == "":
			all = nil
		default:
			all = append(all, u.expand(s.value))
		}
	}
	return all
}

// last is the value that counts of a key that has one.
func (u *SystemdUnit) last(key string) string {
	all := u.list(key)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1]
}

// given reports whether a key is there, be it empty.
func (u *SystemdUnit) given(key string) bool {
	return slices.ContainsFunc(u.settings, func(s setting) bool { return s.section == "Service" && s.key == key })
}
