package unitfile

import (
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"gopkg.in/yaml.v3"
)

// What stands for "as long as it takes": a config's stop_timeout and ready.timeout have an end.
const (
	forever   = 5 * time.Minute
	longStart = 24 * time.Hour
)

func (t *translation) stop(to *yaml.Node, d *daemon) {
	freezes := []syscall.Signal{syscall.SIGSTOP, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGCONT} // check refuses them
	name := d.stop
	if given := t.value("KillSignal"); given != "" {
		if word, ok := signal(given, freezes...); ok {
			name = word
		} else {
			t.lose("KillSignal="+given, "stop_signal: TERM")
		}
	}
	for _, line := range t.values("ExecStop") {
		word, ok := signal(killed(parseRun(line).argv), freezes...)
		switch {
		case d.stop != "": // the signal does the same
		case ok && name == "":
			name = word
		default:
			t.lost = append(t.lost, "ExecStop="+line+" (a program is stopped by stop_signal)")
		}
	}
	if name != "" {
		set(to, "stop_signal", scalar(name))
	}
	limit := t.value("TimeoutStopSec")
	if limit == "" {
		limit = t.value("TimeoutSec")
	}
	if limit == "" {
		return
	}
	wait, ok := span(limit)
	switch {
	case !ok:
		t.lost = append(t.lost, "TimeoutStopSec="+limit)
	case wait == 0:
		t.note("systemd waits for its stop without a limit; here it has %v (stop_timeout).", forever)
		set(to, "stop_timeout", scalar(forever.String()))
	default:
		set(to, "stop_timeout", scalar(wait.String()))
	}
}

// killed is N of `kill -N $MAINPID`, and "" for any other command.
func killed(argv []string) string {
	if len(argv) < 2 || filepath.Base(argv[0]) != "kill" || argv[len(argv)-1] != "$MAINPID" && argv[len(argv)-1] != "${MAINPID}" {
		return ""
	}
	switch flags := argv[1 : len(argv)-1]; {
	case len(flags) == 0:
		return "TERM"
	case flags[0] == "-s" && len(flags) == 2:
		return flags[1]
	case len(flags) == 1 && strings.HasPrefix(flags[0], "-"):
		return flags[0][1:]
	}
	return ""
}

// signal is a signal as a config has it, and whether it is one that is not refused.
func signal(word string, refused ...syscall.Signal) (name string, ok bool) {
	name = strings.TrimPrefix(strings.ToUpper(word), "SIG")
	if after, is := strings.CutPrefix(name, "RTMIN+"); is {
		if n, err := strconv.Atoi(after); err == nil {
			name = strconv.Itoa(34 + n) // the C library keeps the first two
		}
	}
	n, err := strconv.Atoi(name)
	if err != nil {
		n = int(unix.SignalNum("SIG" + name))
	}
	return name, n > 0 && n <= 64 && !slices.Contains(refused, syscall.Signal(n))
}

// reload is the signal of ExecReload=, and the command before it, which keeps a broken config from a program that it would end.
func (t *translation) reload(to *yaml.Node, d *daemon) {
	lines, name, check := t.values("ExecReload"), d.reload, d.check
	at := slices.IndexFunc(lines, func(line string) bool { return killed(parseRun(line).argv) != "" })
	for i, line := range lines {
		r := parseRun(line)
		word, ok := signal(killed(r.argv), syscall.SIGKILL, syscall.SIGSTOP)
		switch {
		case i == at && ok:
			name = word
		case i < at && r.quiet: // the signal follows in any case
		case i < at && len(r.argv) > 0 && check == nil:
			check = t.argv(r)
		case i < at:
			t.note("TO DO: ExecReload=%s comes before its signal, too. Have one script do both: reload_check: [SCRIPT]", line)
		case at < 0 && d.reload != "": // the signal does the same
		default:
			t.lost = append(t.lost, "ExecReload="+line+" (a program is reloaded by reload_signal)")
		}
	}
	if len(lines) == 0 {
		if name == "" {
			t.note("The unit has no ExecReload=, so systemd does not reload it. `understudy reload` sends it SIGHUP, " +
				"which ends many programs.")
		}
		return
	}
	if name != "" && name != "HUP" {
		set(to, "reload_signal", scalar(name))
	}
	if len(check) > 0 {
		set(to, "reload_check", flow(check))
	}
}

func (t *translation) restart(to *yaml.Node) {
	policy := t.value("Restart")
	r := mapping()
	switch policy {
	case "":
		t.note("The unit has no Restart=, so systemd would not restart it. Here it is restarted after a failure, " +
			"which takes less time than a takeover.")
		t.note("For a takeover after each failure, add restart: {policy: never}.")
	case "no":
		set(r, "policy", scalar("never"))
	case "always":
		set(r, "policy", scalar("always"))
	case "on-success":
		set(r, "policy", scalar("always"))
		t.lose("Restart="+policy, "also after a failure")
	case "on-failure":
	default:
		t.lose("Restart="+policy, "on-failure, after any exit code but 0")
	}
	delay := t.value("RestartSec")
	switch wait, ok := span(delay); {
	case delay == "":
	case !ok || delay == "infinity":
		t.lose("RestartSec="+delay, "")
	default:
		set(r, "delay", scalar(wait.String()))
		if wait >= 30*time.Second { // the longest, unless it is given
			set(r, "max_delay", scalar(wait.String()))
			set(r, "within", scalar((5 * wait).String())) // so that five failures fit in
		}
	}
	if len(r.Content) > 0 {
		set(to, "restart", r)
	}
}

// span is a time as systemd writes it: 90, 20s, 1min 30s, infinity (0).
func span(text string) (time.Duration, bool) {
	if text == "infinity" {
		return 0, true
	}
	units := map[string]time.Duration{
		"": time.Second, "s": time.Second, "sec": time.Second, "second": time.Second, "seconds": time.Second, "ms": time.Millisecond,
		"us": time.Microsecond, "m": time.Minute, "min": time.Minute, "minute": time.Minute, "minutes": time.Minute, "h": time.Hour,
		"hr": time.Hour, "hour": time.Hour, "hours": time.Hour,
	}
	var sum time.Duration
	for rest := text; strings.TrimSpace(rest) != ""; {
		part := spanPart.FindStringSubmatch(rest)
		if part == nil {
			return 0, false
		}
		n, err := strconv.ParseFloat(part[1], 64)
		unit, known := units[part[2]]
		if err != nil || !known {
			return 0, false
		}
		sum += time.Duration(n * float64(unit))
		rest = rest[len(part[0]):]
	}
	return sum, text != ""
}

var spanPart = regexp.MustCompile(`^ *([0-9.]+) *([a-z]*)`)

func scalar(v string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: v} }

// quoted is a text that could be taken for a number or a truth value.
func quoted(v string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Value: v, Style: yaml.DoubleQuotedStyle}
}

func flow(words []string) *yaml.Node {
	list := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, word := range words {
		n := scalar(word)
		n.Tag = "!!str" // 0755 keeps its quotes
		list.Content = append(list.Content, n)
	}
	return list
}

// mapping is made of keys and their values; a value may be a string.
func mapping(pairs ...any) *yaml.Node {
	m := &yaml.Node{Kind: yaml.MappingNode}
	for i := 0; i+1 < len(pairs); i += 2 {
		key, _ := pairs[i].(string)
		value, ok := pairs[i+1].(*yaml.Node)
		if text, is := pairs[i+1].(string); is && !ok {
			value = scalar(text)
		}
		set(m, key, value)
	}
	return m
}

func set(m *yaml.Node, key string, value *yaml.Node) {
	for i := 0; i < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			m.Content[i+1] = value
			return
		}
	}
	name := scalar(key)
	name.Tag = "!!str" // a unit may be called ~ or 1
	m.Content = append(m.Content, name, value)
}
