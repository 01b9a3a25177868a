package unitfile

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// What stands for "as long as it takes": a config's stop_timeout and ready.timeout have an end.
const (
	forever   = 5 * time.Minute
	longStart = 24 * time.Hour
)

func (t *translation) stop(to *yaml.Node, d *daemon) {
	signal := strings.TrimPrefix(t.value("KillSignal"), "SIG")
	if signal == "" {
		signal = d.stop
	}
	if signal != "" {
		set(to, "stop_signal", scalar(signal))
	}
	for _, line := range t.values("ExecStop") {
		switch argv := parseRun(line).argv; {
		case d.stop != "": // the signal does the same
		case len(argv) > 0 && killSignal(argv) != "" && signal == "":
			signal = killSignal(argv)
			set(to, "stop_signal", scalar(signal))
		default:
			t.lost = append(t.lost, "ExecStop="+line+" (a program is stopped by stop_signal)")
		}
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

// killSignal is N of `kill -N $MAINPID`, and "" for any other command.
func killSignal(argv []string) string {
	if len(argv) < 2 || !strings.HasSuffix(argv[0], "kill") || argv[len(argv)-1] != "$MAINPID" && argv[len(argv)-1] != "${MAINPID}" {
		return ""
	}
	switch flags := argv[1 : len(argv)-1]; {
	case len(flags) == 0:
		return "TERM"
	case flags[0] == "-s" && len(flags) == 2:
		return strings.TrimPrefix(flags[1], "SIG")
	case len(flags) == 1 && strings.HasPrefix(flags[0], "-"):
		return strings.TrimPrefix(strings.TrimPrefix(flags[0], "-"), "SIG")
	}
	return ""
}

func (t *translation) reload(to *yaml.Node, d *daemon) {
	signal := d.reload
	lines := t.values("ExecReload")
	for _, line := range lines {
		if s := killSignal(parseRun(line).argv); s != "" {
			signal = s
		} else if d.reload == "" {
			t.lost = append(t.lost, "ExecReload="+line+" (a program is reloaded by reload_signal)")
		}
	}
	if signal != "" && signal != "HUP" && len(lines) > 0 {
		set(to, "reload_signal", scalar(signal))
	}
}

func (t *translation) restart(to *yaml.Node) {
	policy := t.value("Restart")
	r := mapping()
	switch policy {
	case "":
		t.note("The unit has no Restart=, so systemd would not restart it. Here it is restarted after a failure, which takes less time than a takeover.")
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
		"": time.Second, "s": time.Second, "sec": time.Second, "second": time.Second, "seconds": time.Second, "ms": time.Millisecond, "us": time.Microsecond,
		"m": time.Minute, "min": time.Minute, "minute": time.Minute, "minutes": time.Minute, "h": time.Hour, "hr": time.Hour, "hour": time.Hour, "hours": time.Hour,
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
