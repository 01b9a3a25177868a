package unitfile

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"understudy/supervisor/printable"
)

// limits are the keys of a config's limits, by what follows Limit in systemd's LimitNOFILE= and the like.
var limits = map[string]string{
	"AS": "as", "CORE": "core", "CPU": "cpu", "DATA": "data", "FSIZE": "fsize", "LOCKS": "locks", "MEMLOCK": "memlock",
	"MSGQUEUE": "msgqueue", "NICE": "nice", "NOFILE": "nofile", "NPROC": "nproc", "RSS": "rss", "RTPRIO": "rtprio", "RTTIME": "rttime",
	"SIGPENDING": "sigpending", "STACK": "stack",
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
		return nil, fmt.Errorf("%s is a oneshot (Type=oneshot): it runs no program that stays. Name the unit that does, "+
			"as postgresql@15-main in place of postgresql", t.Name)
	}
	main := parseRun(starts[0])
	if len(main.argv) == 0 {
		return nil, fmt.Errorf("%s: ExecStart=%s has no command", t.Name, starts[0])
	}
	d := cmp.Or(known(main.argv), &daemon{})
	kept := Foreground(main.argv)
	switch {
	case !slices.Equal(kept, main.argv):
		t.note("changed, so that it stays in the foreground: %s", strings.Join(kept, " "))
	case t.last("Type") == "forking" && (len(d.names) == 0 || d.becomes != nil):
		t.note("TO DO: this program goes to the background (Type=forking) and would count as ended. " +
			"Add its flag for the foreground to command.")
	}
	main.argv, main.verbatim = kept, main.verbatim || d.becomes != nil // a shell that is put in place of a script has variables of its own
	t.outside(kept)
	program := mapping("command", t.command(main))
	t.world(program, main, d)
	t.ready(program, d)
	service := program
	if before := t.before(program); len(before) > 0 {
		last := mapping("name", processName(main.argv))
		last.Content = append(last.Content, program.Content...)
		service = mapping("processes", &yaml.Node{Kind: yaml.SequenceNode, Content: append(before, last)})
	}
	t.stop(service, d)
	t.reload(service, d)
	t.restart(service)
	return service, nil
}

// ready is how it shows that a program has started.
func (t *translation) ready(program *yaml.Node, d *daemon) {
	pid := t.last("PIDFile")
	if d.listens && pid != "" {
		set(program, "ready", mapping("exec", flow([]string{"sh", "-c", `kill -0 "$(cat ` + shellWord(pid) + `)"`})))
	}
	if !strings.HasPrefix(t.last("Type"), "notify") && !d.notify {
		return
	}
	r := mapping("notify", "true")
	switch wait, ok := span(cmp.Or(t.last("TimeoutStartSec"), t.last("TimeoutSec"))); {
	case ok && wait == 0:
		t.note("systemd waits for its start without a limit; here it has %v (ready.timeout).", longStart)
		set(r, "timeout", scalar(longStart.String()))
	case ok:
		t.used["TimeoutStartSec"] = true
		set(r, "timeout", scalar(wait.String()))
	}
	set(program, "ready", r)
}

// processName is the name of a program among processes.
func processName(argv []string) string {
	return strings.TrimLeft(filepath.Base(argv[0]), ".-")
}

func (t *translation) command(r run) *yaml.Node { return flow(t.argv(r)) }

func (t *translation) argv(r run) []string {
	if r.verbatim {
		return r.argv
	}
	return variables(r.argv)
}

// world is what the program runs in.
func (t *translation) world(to *yaml.Node, main run, d *daemon) {
	user, group := cmp.Or(t.value("User"), d.user), t.value("Group")
	switch {
	case main.asRoot && user+group != "":
		t.note("ExecStart= has %s, so it starts as root, without user and group. Some programs change to User=%s themselves.",
			main.mark(), user)
	case !main.asRoot && user != "":
		set(to, "user", scalar(user))
	}
	if group != "" && !main.asRoot {
		set(to, "group", scalar(group))
	}
	if main.quiet {
		t.lose("ExecStart=-", differs["SuccessExitStatus"])
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
	for _, line := range append(t.values("Environment"), d.env) {
		for _, word := range words(line) {
			if key, value, ok := strings.Cut(word, "="); ok {
				set(env, key, quoted(value))
			}
		}
	}
	if len(env.Content) > 0 {
		set(to, "env", env)
	}
	if file := t.envFile(); file != "" {
		set(to, "env_file", scalar(file))
		if len(env.Content) > 0 {
			t.note("env wins over env_file here; under systemd the file wins: remove from env what the file sets.")
		}
	}
	t.limits(to)
	for _, number := range []struct{ key, as string }{{"Nice", "nice"}, {"OOMScoreAdjust", "oom_score_adj"}} {
		if v := t.value(number.key); v != "" {
			set(to, number.as, scalar(v))
		}
	}
	if main.all {
		for _, key := range []string{"NoNewPrivileges", "CapabilityBoundingSet", "AmbientCapabilities"} {
			t.used[key] = true // they do not hold for a line with +
		}
		return
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
	for _, l := range together {
		v := t.value(l.key)
		switch {
		case v == "" || v == "infinity":
		case !l.form.MatchString(v) || l.as == "cpu" && t.last("LimitCPU") != "": // which is of each process
			t.lose(l.key+"="+v, "")
		default:
			set(all, l.as, scalar(size(v)))
		}
	}
	if len(all.Content) > 0 {
		set(to, "limits", all)
	}
}

// together are the limits of all processes of a unit, as far as limits has their values: no share of the machine's memory, for example.
var together = []struct {
	key, as string
	form    *regexp.Regexp
}{
	{"MemoryMax", "memory", regexp.MustCompile(`^[1-9]\d*[KMGT]?$`)},
	{"CPUQuota", "cpu", regexp.MustCompile(`^[1-9]\d*%$`)},
	{"TasksMax", "tasks", regexp.MustCompile(`^[1-9]\d*$`)},
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
