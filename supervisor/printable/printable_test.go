package printable

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/iotest"
	"unicode"
	"unicode/utf8"

	"understudy/supervisor/testbed/must"
)

// hostile is what a terminal would obey, and what hides or turns text.
const hostile = "\x1b[2J\x9b \u009b31m \x7f \b\r \u202e\u200b\U000e0041 \x07\x00"

func TestNothingThatATerminalObeysIsLeft(t *testing.T) {
	t.Parallel()
	value := map[string]string{"says": hostile + "é\U0001F600", hostile: "x"}
	raw, err := json.MarshalIndent(value, "", "\t")
	must.OK(t, err)
	var lines strings.Builder
	if _, err := (&Lines{To: &lines}).Write([]byte(hostile + "\n")); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"text": Text(hostile), "JSON": string(JSON(raw)), "lines": lines.String()} {
		for _, r := range text {
			if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
				t.Errorf("%s: %q has %U", name, text, r)
			}
		}
	}
	var got map[string]string
	must.OK(t, json.Unmarshal(JSON(raw), &got))
	for key, want := range value {
		if want = strings.ToValidUTF8(want, string(utf8.RuneError)); got[strings.ToValidUTF8(key, string(utf8.RuneError))] != want {
			t.Errorf("%q became %q", want, got)
		}
	}
}

func TestLinesAreShownAsTheyAre(t *testing.T) {
	t.Parallel()
	const said = "a\tb\r\nGrüße \U0001F600\n\x1b[31mred\x9b\u009b\rover\x7f\n"
	const want = "a\tb\nGrüße \U0001F600\n^[[31mred<9B><U+009B>^Mover^?\n"
	for name, pieces := range map[string]int{"at once": len(said), "byte by byte": 1, "by three": 3} {
		var out strings.Builder
		l := &Lines{To: &out}
		for text := said; text != ""; {
			n := min(pieces, len(text))
			if got, err := l.Write([]byte(text[:n])); got != n || err != nil {
				t.Fatal(got, err)
			}
			text = text[n:]
		}
		if out.String() != want {
			t.Errorf("%s: %q, want %q", name, out.String(), want)
		}
	}
	if _, err := (&Lines{To: failing{}}).Write([]byte("x")); err == nil {
		t.Error("a failure to write was not told")
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, iotest.ErrTimeout }

func FuzzJSONStaysTheSameValue(f *testing.F) {
	f.Add(hostile)
	f.Fuzz(func(t *testing.T, s string) {
		raw, err := json.Marshal(s)
		must.OK(t, err)
		var was, is string
		must.OK(t, json.Unmarshal(raw, &was))
		if err := json.Unmarshal(JSON(raw), &is); err != nil || is != was {
			t.Fatalf("%q became %q: %v", was, is, err)
		}
	})
}
