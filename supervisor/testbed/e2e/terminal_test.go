package e2e

import (
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"understudy/supervisor/testbed/kit"
)

// Colours are for terminals whose user wants them, and do not move the columns.
func TestStatusIsColouredOnATerminalAlone(t *testing.T) {
	p := newPlay(t, stage(t))
	p.OnTwoHosts(t)
	p.Role(t, "a", "active")
	op := p.Lab.Here("op")
	piped := op.Ask(t, p.asking("status")...).Out
	if strings.Contains(piped, "\x1b") {
		t.Errorf("colours in a pipe: %q", piped)
	}
	// How long it is so differs from one call to the next.
	columns := func(text string) string { return regexp.MustCompile(`\d+s`).ReplaceAllString(text, "#") }
	for name, c := range map[string]struct {
		env      []string
		coloured bool
	}{
		"xterm":    {[]string{"TERM=xterm", "NO_COLOR="}, true},
		"dumb":     {[]string{"TERM=dumb", "NO_COLOR="}, false},
		"NO_COLOR": {[]string{"TERM=xterm", "NO_COLOR=1"}, false},
	} {
		term := op.Terminal(t, 24, 80, c.env, p.asking("status")...)
		if code := term.ExitCode(t, soon); code != 0 {
			t.Fatalf("%s: exit code %d: %q", name, code, term.Raw())
		}
		if got := strings.Contains(term.Raw(), "\x1b[32mactive\x1b[0m"); got != c.coloured || !c.coloured && strings.Contains(term.Raw(), "\x1b") {
			t.Errorf("%s: coloured %v: %q", name, got, term.Raw())
		}
		if columns(term.Since(0)) != columns(piped) {
			t.Errorf("%s: the columns differ:\n%s%s", name, term.Since(0), piped)
		}
	}
}

// frame is the newest picture that was drawn to its end.
func frame(term *kit.Terminal) string {
	const begin, end = "\x1b[?2026h", "\x1b[?2026l"
	raw := term.Raw()
	if last := strings.LastIndex(raw, end); last >= 0 {
		raw = raw[:last]
		return raw[strings.LastIndex(raw, begin)+len(begin):]
	}
	return ""
}

// shows waits until the newest picture has all the words.
func shows(t *testing.T, term *kit.Terminal, what string, words ...string) {
	t.Helper()
	kit.Until(t, soon, what, func() bool {
		f := frame(term)
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(f, w) })
	})
}

func TestTheWatchedStatusStaysCurrent(t *testing.T) {
	p := brief(t, stage(t))
	a, _, _ := p.OnTwoHosts(t)
	op := p.Lab.Host(t, "op")
	term := op.Terminal(t, 24, 80, []string{"TERM=xterm", "NO_COLOR="}, p.asking("status", "--watch", "--timeout", "1s")...)
	shows(t, term, "a is active, b stands by", "\x1b[32mactive", "standby")
	n := term.Len()
	a.Stop(t)
	shows(t, term, "nobody stands by", "No standby: a failure of b would stop it")
	p.Start(t, a.Host)
	kit.Until(t, soon, "a stands by again", func() bool {
		f := frame(term)
		return strings.Contains(f, "standby") && !strings.Contains(f, "No standby")
	})

	op.Cut(t)
	shows(t, term, "that it is old, and whom it does not reach", "OLD, as of ", "has not answered for", p.Options.ZK[0], "standby")
	op.Heal(t)
	kit.Until(t, soon, "it is current again", func() bool { return !strings.Contains(frame(term), "OLD") })

	if strings.Contains(term.Raw()[n:], "\x1b[2J") {
		t.Error("the screen is cleared before it is drawn anew: that flickers")
	}
	for _, line := range strings.Split(frame(term), "\r\n") {
		if seen := regexp.MustCompile("\x1b\\[[?0-9;]*[a-zA-Z]").ReplaceAllString(line, ""); utf8.RuneCountInString(seen) > 80 {
			t.Errorf("more than 80 columns: %q", seen)
		}
	}
}

func TestTheWatchedStatusKeepsToTheWindowAndGivesTheTerminalBack(t *testing.T) {
	p := newPlay(t, stage(t))
	p.OnTwoHosts(t)
	term := p.Lab.Here("op").Terminal(t, 24, 80, []string{"TERM=xterm"}, p.asking("status", "--watch")...)
	shows(t, term, "b stands by", "standby")
	term.Resize(t, 2, 30)
	shows(t, term, "what fits a small window", "more lines")
	if lines := strings.Count(frame(term), "\n") + 1; lines != 2 {
		t.Errorf("%d lines in a window of 2: %q", lines, frame(term))
	}
	var took []time.Duration
	for i := range 11 { // at once, and not only when the next second begins
		n, began := term.Len(), time.Now()
		term.Resize(t, 24, 70+i)
		kit.Until(t, soon, "it is drawn anew", func() bool { return strings.Contains(term.Raw()[n:], "\x1b[?2026l") })
		took = append(took, time.Since(began))
	}
	if kit.Quantile(took, 0) > time.Second/2 { // that of the next second may come sooner by chance, but not each time
		t.Errorf("drawn anew after %v", took)
	}
	shows(t, term, "all again", "standby")

	const given, drawn = "\x1b[?1049l", "\x1b[?2026l"
	n := term.Len()
	term.Type(t, "\x1a") // Ctrl-Z
	kit.Until(t, soon, "it is drawn again and again, because Ctrl-Z does nothing", func() bool {
		return strings.Count(term.Raw()[n:], drawn) > 2
	})

	term.Type(t, "\x03")
	if code := term.ExitCode(t, soon); code != 0 {
		t.Errorf("exit code %d", code)
	}
	raw := term.Raw()
	back := strings.LastIndex(raw, given)
	if back < 0 || strings.LastIndex(raw, "\x1b[?25h") > back || strings.LastIndex(raw, "\x1b[?25l") > back || !strings.Contains(raw[back:], "standby") {
		t.Errorf("the end is %q", raw[max(len(raw)-500, 0):])
	}
}

// Whoever types a command learns in one line what is the matter, and scripts by the exit code.
func TestEveryCommandTellsWhenZooKeeperOrTheActiveDoesNotAnswer(t *testing.T) {
	p := brief(t, stage(t))
	a, _, _ := p.OnTwoHosts(t)
	service, op := p.Options.Service, p.Lab.Here("op")
	for _, words := range [][]string{
		{"status"}, {"history"}, {"switchover", service}, {"pause", service}, {"resume", "--all"}, {"restart", service}, {"reload", service},
		{"fence", "confirm", service, "--node", "a"}, {"restart", service, "--node", "b"}, {"reclone", service, "--node", "b"},
	} {
		r := op.Ask(t, append(words, "--zk", "127.0.0.1:1,127.0.0.1:2", "--timeout", "400ms")...)
		if r.Code != 3 || r.Out != "" || strings.Count(r.Err, "\n") != 1 || !strings.Contains(r.Err, "127.0.0.1:1") || !strings.Contains(r.Err, "is --zk right?") {
			t.Errorf("%v: %+v", words, r)
		}
		r = op.Ask(t, append(words, "--zk-servers", "x")...)
		if r.Code != 2 || strings.Count(r.Err, "\n") != 1 || !strings.Contains(r.Err, "--help") {
			t.Errorf("%v with a wrong flag: %+v", words, r)
		}
	}
	began := time.Now() // who waits a minute for an outcome does not wait so long for servers
	if r := op.Ask(t, "switchover", service, "--zk", "127.0.0.1:1"); r.Code != 1 || time.Since(began) > soon {
		t.Errorf("switchover after %v: %+v", time.Since(began), r)
	}
	for _, words := range [][]string{
		{"status", service + "x"}, {"history", service + "x"}, {"switchover", service + "x"}, {"pause", service + "x"}, {"reload", service + "x"},
	} {
		if said := p.refusal(t, op, words...); !strings.Contains(said, `did you mean "`+service+`"?`) {
			t.Errorf("%v: %q", words, said)
		}
	}
	a.Signal(syscall.SIGSTOP)
	r := op.Ask(t, p.asking("restart", service, "--timeout", "1s")...) // it is the time for connecting, too; a's lease is longer
	a.Signal(syscall.SIGCONT)
	if r.Code != 3 || strings.Count(r.Err, "\n") != 1 || !strings.Contains(r.Err, "timed out after 1s") {
		t.Errorf("restart while a is frozen: %+v", r)
	}
}

// Without a screen, as in a pipe, --watch prints the table anew whenever something has changed, and with --json an object.
func TestStatusWithoutAScreenPrintsEachChange(t *testing.T) {
	p := brief(t, stage(t))
	_, _, run := p.OnTwoHosts(t)
	op := p.Lab.Here("op")
	table, objects := op.Understudy(t, p.asking("status", "--watch")...), op.Understudy(t, p.asking("status", "--watch", "--json")...)
	for _, s := range []*kit.Supervisor{table, objects} {
		kit.Until(t, soon, "it is shown who is active", func() bool { return strings.Contains(s.Log(), "active") })
	}
	p.order(t, op, "switchover", p.Options.Service)
	next := p.Next(t, soon, run.First)
	kit.Until(t, soon, "the change is shown", func() bool {
		_, rest, ok := strings.Cut(table.Log(), "\n\n")
		return ok && regexp.MustCompile(next.Node+` +active`).MatchString(rest)
	})
	kit.Until(t, soon, "the change is shown as JSON", func() bool {
		lines := strings.Split(strings.TrimSpace(objects.Log()), "\n")
		return len(lines) > 1 && strings.Contains(lines[len(lines)-1], `"active":"`+next.Node+`"`)
	})
}

// Who has a copy cloned types the name of its node once more, on a terminal, and nothing is ordered until then.
func TestACloneIsAskedForTwice(t *testing.T) {
	p := newPlay(t, stage(t))
	p.OnTwoHosts(t)
	p.Role(t, "a", "active")
	service := p.Options.Service
	for typed, want := range map[string]string{"a\r": `"a" is not b: nothing is done`, "b\r": service + " is neither replicated nor warm: it runs on its active node only"} {
		term := p.Lab.Here("op").Terminal(t, 24, 200, nil, p.asking("reclone", service, "--node", "b")...)
		kit.Until(t, soon, "it asks", func() bool {
			return strings.Contains(term.Raw(), "The data of the copy of "+service+" on b is deleted, and replaced by the primary's. Type the node's name to confirm that: ")
		})
		term.Type(t, typed)
		if code := term.ExitCode(t, soon); code != 1 || !strings.Contains(term.Raw(), want) {
			t.Errorf("%q: exit code %d: %q", typed, code, term.Raw())
		}
	}
	if r := p.Lab.Here("op").Ask(t, p.asking("reclone", service)...); r.Code != 2 || !strings.Contains(r.Err, "--node is missing") {
		t.Errorf("without a node: %d %q", r.Code, r.Err)
	}
}
