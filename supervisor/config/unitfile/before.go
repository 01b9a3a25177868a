package unitfile

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// before are the oneshots that come before the program: its folders, and ExecStartPre=, which have the program's account and environment.
func (t *translation) before(program *yaml.Node) (all []*yaml.Node) {
	account, world := []string{"user", "group"}, []string{"working_dir", "umask", "env", "env_file"}
	for _, kind := range []struct{ key, base string }{
		{"RuntimeDirectory", "/run"}, {"StateDirectory", "/var/lib"}, {"LogsDirectory", "/var/log"}, {"CacheDirectory", "/var/cache"},
	} {
		mode := t.value(kind.key + "Mode")
		if mode == "" {
			mode = "0755"
		}
		for i, dir := range strings.Fields(strings.Join(t.values(kind.key), " ")) {
			name := strings.ToLower(strings.TrimSuffix(kind.key, "Directory")) + "-dir"
			if i > 0 {
				name += "-" + strconv.Itoa(i+1)
			}
			all = append(all, oneshot(name, t.folder(mode, filepath.Join(kind.base, dir)), program))
		}
	}
	for i, line := range t.values("ExecStartPre") {
		r := parseRun(line)
		if len(r.argv) == 0 {
			continue
		}
		if r.quiet {
			r.argv = append([]string{"sh", "-c", `"$@" || true`, "sh"}, r.argv...)
			r.verbatim = true
		}
		inherits := world
		if !r.asRoot {
			inherits = slices.Concat(account, world)
		}
		all = append(all, oneshot("before-"+strconv.Itoa(i+1), t.command(r), program, inherits...))
	}
	return all
}

// oneshot is a command that runs before the program, with some of its keys.
func oneshot(name string, command, program *yaml.Node, keys ...string) *yaml.Node {
	one := mapping("name", name, "command", command, "oneshot", "true")
	for i := 0; i < len(program.Content); i += 2 {
		if key := program.Content[i].Value; slices.Contains(keys, key) {
			set(one, key, program.Content[i+1])
		}
	}
	return one
}

// folder makes a directory as systemd does: without Group= it has the group of its user, whom this host may not know.
func (t *translation) folder(mode, dir string) *yaml.Node {
	user, group := t.last("User"), t.last("Group")
	argv := []string{"install", "-d", "-m", mode}
	switch {
	case user != "" && group == "":
		u := shellWord(user)
		return flow([]string{
			"sh", "-c", "exec install -d -m " + shellWord(mode) + " -o " + u + ` -g "$(id -g ` + u + `)" ` + shellWord(dir),
		})
	case user != "":
		argv = append(argv, "-o", user)
	}
	if group != "" {
		argv = append(argv, "-g", group)
	}
	return flow(append(argv, dir))
}
