package demo

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"understudy/supervisor/control"
)

// signed is a folder with the signs of these lives.
func signed(t *testing.T, lives ...life) signs {
	dir := t.TempDir()
	for _, l := range lives {
		text := binary.NativeEndian.AppendUint64(nil, uint64(l.first))
		text = binary.NativeEndian.AppendUint64(text, uint64(l.last))
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s,%d,1.life", l.node, l.token)), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return signs(dir)
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*[a-zA-Z]")

func staged(t *testing.T) *picture {
	t.Setenv("LC_ALL", "C.UTF-8")
	t.Setenv("NO_COLOR", "")
	end := now()
	s := &stage{signs: signed(t,
		life{node: "node-1", token: 7, first: end - 8*time.Second, last: end - 4*time.Second},
		life{node: "node-9", token: 4294967301, first: end - 3990*milli, last: end},
	)}
	s.status.Store(&control.ServiceStatus{Members: []control.MemberStatus{{Node: "node-9", Role: "active"}, {Node: "node-2", Role: "standby"}}})
	for _, name := range []string{"node-1", "node-2", "node-9"} {
		s.nodes = append(s.nodes, &node{name: name, states: []state{{up, 0}}})
	}
	s.nodes[0].states = append(s.nodes[0].states, state{frozen, end - 5*time.Second})
	return &picture{ink: newInk(), stage: s, caption: func() string { return strings.Repeat("long ", 40) }}
}

func TestThePictureFitsTheScreen(t *testing.T) {
	p := staged(t)
	for _, width := range []int{40, 80, 200} {
		for _, line := range p.lines(width) {
			plain := escapes.ReplaceAllString(line, "")
			if n := utf8.RuneCountInString(plain); n > min(max(width, 48), 80) {
				t.Errorf("%d columns of %d: %s", n, width, plain)
			}
		}
	}
}

func TestThePictureTellsWhereTheProgramRanAndWhatBecameOfTheNodes(t *testing.T) {
	lines := staged(t).lines(80)
	for i, want := range []string{"frozen", "standby", "ACTIVE token 4294967301"} {
		plain := escapes.ReplaceAllString(lines[1+i], "")
		if !strings.HasSuffix(plain, "  "+want) {
			t.Errorf("%q does not end with %q", plain, want)
		}
	}
	strip := func(i int) []rune { return []rune(escapes.ReplaceAllString(lines[1+i], ""))[2+nameWidth:] }
	first, last := strip(0), strip(2)
	both := 0
	for i := range 39 {
		if first[i] == '█' && last[i] == '█' {
			both++
		}
	}
	if both > 0 || !strings.Contains(string(first), "████████=") || !strings.Contains(string(last), "··███████") {
		t.Errorf("the strips are\n%s\n%s", string(first), string(last))
	}
}

func TestTheScreenKeepsItsLinesAndRedrawsThePicture(t *testing.T) {
	var b strings.Builder
	s := &screen{out: &b, width: func() int { return 80 }}
	s.draw([]string{"a", "b"})
	s.say("said")
	s.draw(nil)
	want := "a\x1b[K\nb\x1b[K\n\x1b[J" + "\x1b[2A\rsaid\x1b[K\na\x1b[K\nb\x1b[K\n\x1b[J" + "\x1b[2A\r\x1b[J"
	if b.String() != want {
		t.Errorf("got %q", b.String())
	}
	b.Reset()
	s = &screen{out: &b, width: func() int { return 0 }}
	s.draw([]string{"a"})
	s.say("said")
	if b.String() != "said\n" {
		t.Errorf("where there is no terminal: %q", b.String())
	}
}

func TestTimesAreToldShort(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0", 1234 * time.Microsecond: "1.2 ms", 1234 * milli: "1.23 s"} {
		if got := tell(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}
