package unitfile

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"understudy/supervisor/printable"
)

// limits are the keys of a config's limits, by what follows Limit in systemd's LimitNOFILE= and the like.
var limits = map[string]string{
	"AS": "as", "CORE": "core", "CPU": "cpu", "DATA": "data", "FSIZE": "fsize", "LOCKS": "locks", "MEMLOCK": "memlock", "MSGQUEUE": "msgqueue",
	"NICE": "nice", "NOFILE": "nofile", "NPROC": "nproc", "RSS": "rss", "RTPRIO": "rtprio", "RTTIME": "rttime", "SIGPENDING": "sigpending", "STACK": "stack",
}

// translation is a unit on its way to a config.
type translation struct {
	*SystemdUnit
	used  map[string]bool
	lost  []string // what a reader has to decide
	notes []string
}

// YAML is a config file with the unit as a service, and comments for what has no place in it.
func (u *SystemdUnit) YAML() (string, error) {
	t := translation{SystemdUnit: u, used: map[string]bool{}}
	name := serviceName(u.Name)
	service, err := t.service()
	if err != nil {
		return "", err
	}
	t.leftOut()
	t.specifiers()
	file := mapping("services", mapping(name, service))
	var text bytes.Buffer
	comment := func(format string, args ...any) {
		line := printable.Text(fmt.Sprintf(format, args...)) // YAML ends a line, and a comment, at five characters
		fmt.Fprintf(&text, "# %s\n", strings.ReplaceAll(line, "\n", "?"))
	}
	comment("From %s.", strings.Join(u.Files, ", "))
	comment("On every host, before Understudy starts it: systemctl disable --now %s", u.Name)
	for _, note := range t.notes {
		comment("%s", note)
	}
	for _, line := range t.lost {
		comment("not carried over: %s", line)
	}
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	err = encoder.Encode(file)
	return text.String(), err
}

// serviceName is a unit's name without what is special in systemd.
func serviceName(unit string) string {
	return strings.TrimSuffix(unit, ".service")
}

func (t *translation) note(format string, args ...any) {
	if line := fmt.Sprintf(format, args...); !slices.Contains(t.notes, line) {
		t.notes = append(t.notes, line)
	}
}

func (t *translation) value(key string) string { t.used[key] = true; return t.last(key) }

func (t *translation) values(key string) []string { t.used[key] = true; return t.list(key) }

func (t *translation) service() (*yaml.Node, error) {
	starts := t.values("ExecStart")
	switch {
	case len(starts) == 0:
		return nil, fmt.Errorf("%s has no ExecStart=: it runs no program", t.Name)
	case t.last("Type") == "oneshot":
		return nil, fmt.Errorf("%s is a oneshot (Type=oneshot): it runs no program that stays. Name the unit that does, as postgresql@15-main in place of postgresql", t.Name)
	}
	main := parseRun(starts[0])
	if len(main.argv) == 0 {
		return nil, fmt.Errorf("%s: ExecStart=%s has no command", t.Name, starts[0])
	}
	d := known(main.argv)
	kept := Foreground(main.argv)
	switch {
	case !slices.Equal(kept, main.argv):
		t.note("changed, so that it stays in the foreground: %s", strings.Join(kept, " "))
	case t.last("Type") == "forking" && d == nil:
		t.note("TO DO: this program goes to the background (Type=forking) and would count as ended. Add its flag for the foreground to command.")
	}
	main.argv = kept
	program := mapping("command", t.command(main))
	t.world(program)
	if strings.HasPrefix(t.last("Type"), "notify") {
		set(program, "ready", t.ready())
	}
	service := program
	if before := t.before(program); len(before) > 0 {
		last := mapping("name", processName(main.argv))
		last.Content = append(last.Content, program.Content...)
		service = mapping("processes", &yaml.Node{Kind: yaml.SequenceNode, Content: append(before, last)})
	}
	if d == nil {
		d = &daemon{}
	}
	t.stop(service, d)
	t.reload(service, d)
	t.restart(service)
	return service, nil
}

// ready is for a program that tells systemd when it is.
func (t *translation) ready() *yaml.Node {
	r := mapping("notify", "true")
	switch wait, ok := span(cmp.Or(t.last("TimeoutStartSec"), t.last("TimeoutSec"))); {
	case ok && wait == 0:
		t.note("systemd waits for its start without a limit; here it has %v (ready.timeout).", longStart)
		set(r, "timeout", scalar(longStart.String()))
	case ok:
		t.used["TimeoutStartSec"] = true
		set(r, "timeout", scalar(wait.String()))
	}
	return r
}

// processName is the name of a program among processes.
func processName(argv []string) string {
	return strings.TrimLeft(filepath.Base(argv[0]), ".-")
}

func (t *translation) command(r run) *yaml.Node {
	argv := r.argv
	if !r.verbatim {
		argv = variables(argv)
	}
	return flow(argv)
}

// world is what the program runs in.
func (t *translation) world(to *yaml.Node) {
	for _, plain := range []struct{ key, as string }{{"User", "user"}, {"Group", "group"}} {
		if v := t.value(plain.key); v != "" {
			set(to, plain.as, scalar(v))
		}
	}
	if dir := strings.TrimPrefix(t.value("WorkingDirectory"), "-"); strings.HasPrefix(dir, "/") {
		set(to, "working_dir", scalar(dir))
	} else if dir != "" {
		t.lost = append(t.lost, "WorkingDirectory="+dir)
	}
	if v := t.value("UMask"); v != "" {
		set(to, "umask", quoted(v))
	}
	env := mapping()
	for _, line := range t.values("Environment") {
		for _, word := range words(line) {
			if key, value, ok := strings.Cut(word, "="); ok {
				set(env, key, quoted(value))
			}
		}
	}
	if len(env.Content) > 0 {
		set(to, "env", env)
	}
	for i, file := range t.values("EnvironmentFile") {
		switch path := strings.TrimPrefix(file, "-"); {
		case i > 0:
			t.lost = append(t.lost, "EnvironmentFile="+file+" (a service has one env_file)")
		default:
			set(to, "env_file", scalar(path))
			if path != file {
				t.note("env_file has to exist here; systemd does without it.")
			}
			if len(env.Content) > 0 {
				t.note("env wins over env_file here; under systemd the file wins: remove from env what the file sets.")
			}
		}
	}
	t.limits(to)
	for _, number := range []struct{ key, as string }{{"Nice", "nice"}, {"OOMScoreAdjust", "oom_score_adj"}} {
		if v := t.value(number.key); v != "" {
			set(to, number.as, scalar(v))
		}
	}
	if yes(t.value("NoNewPrivileges")) {
		set(to, "no_new_privileges", scalar("true"))
	}
	t.capabilities(to)
}

func yes(v string) bool {
	return slices.Contains([]string{"yes", "true", "on", "1"}, strings.ToLower(v))
}

func (t *translation) limits(to *yaml.Node) {
	all := mapping()
	for _, s := range t.settings {
		key, ok := limits[strings.TrimPrefix(s.key, "Limit")]
		if s.section != "Service" || !strings.HasPrefix(s.key, "Limit") || !ok || t.used[s.key] {
			continue
		}
		soft, hard, both := strings.Cut(t.value(s.key), ":")
		switch {
		case soft == "":
		case both:
			set(all, key, mapping("soft", scalar(size(soft)), "hard", scalar(size(hard))))
		default:
			set(all, key, scalar(size(soft)))
		}
	}
	if len(all.Content) > 0 {
		set(to, "limits", all)
	}
}

// size is a limit in the config's words.
func size(v string) string {
	if v == "infinity" {
		return "unlimited"
	}
	if units := strings.TrimRight(v, "KMGT"); units != v && units != "" {
		return v + "iB"
	}
	return v
}

func (t *translation) capabilities(to *yaml.Node) {
	all := mapping()
	for _, c := range []struct{ key, as string }{{"CapabilityBoundingSet", "bounding"}, {"AmbientCapabilities", "ambient"}} {
		given := t.given(c.key)
		names := strings.Fields(strings.Join(t.values(c.key), " "))
		switch {
		case !given:
		case slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "~") }):
			t.lost = append(t.lost, c.key+"="+strings.Join(names, " "))
		case c.as == "bounding" || len(names) > 0:
			set(all, c.as, flow(names))
		}
	}
	if len(all.Content) > 0 {
		set(to, "capabilities", all)
	}
}

// before are the oneshots that come before the program: its folders, and ExecStartPre=, which have the program's account and environment.
func (t *translation) before(program *yaml.Node) (all []*yaml.Node) {
	add := func(name string, asRoot bool, command *yaml.Node) {
		one := mapping("name", name, "command", command, "oneshot", "true")
		for i := 0; i < len(program.Content); i += 2 {
			if key := program.Content[i].Value; !asRoot && slices.Contains([]string{"user", "group", "working_dir", "umask", "env", "env_file"}, key) {
				set(one, key, program.Content[i+1])
			}
		}
		all = append(all, one)
	}
	for _, kind := range []struct{ key, base, mode string }{{"RuntimeDirectory", "/run", "0755"}, {"StateDirectory", "/var/lib", "0755"}, {"LogsDirectory", "/var/log", "0755"}, {"CacheDirectory", "/var/cache", "0755"}} {
		dirs := strings.Fields(strings.Join(t.values(kind.key), " "))
		mode := t.value(kind.key + "Mode")
		if mode == "" {
			mode = kind.mode
		}
		for i, dir := range dirs {
			argv := []string{"install", "-d", "-m", mode}
			if user := t.last("User"); user != "" {
				argv = append(argv, "-o", user)
			}
			if group := t.last("Group"); group != "" {
				argv = append(argv, "-g", group)
			}
			name := strings.ToLower(strings.TrimSuffix(kind.key, "Directory")) + "-dir"
			if i > 0 {
				name += "-" + strconv.Itoa(i+1)
			}
			add(name, true, flow(append(argv, filepath.Join(kind.base, dir))))
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
		add("before-"+strconv.Itoa(i+1), r.asRoot, t.command(r))
	}
	return all
}
