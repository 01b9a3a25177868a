package config

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"understudy/supervisor/safefile"
)

func TestEnvFileIsReadAsSystemdDoes(t *testing.T) {
	for text, want := range map[string][]string{
		"":                               nil,
		"# one\n; two\n\n  # three\n":    nil,
		"A=b":                            {"A=b"},
		"A=b\r\nC=d\r\n":                 {"A=b", "C=d"},
		"  A = b c \t\n":                 {"A=b c"},
		"A=\nB=''\nC=\"\"\n":             {"A=", "B=", "C="},
		"A='b \"c' \nB=\"d 'e\"":         {"A=b \"c", "B=d 'e"},
		"A='  b  '":                      {"A=  b  "},
		"A=it's\n":                       {"A=it's"},
		"A='b' \"c\"d":                   {"A=bcd"},
		"A='b\nc'\nB=d":                  {"A=b\nc", "B=d"},
		"A=b\\\nc\nB=d":                  {"A=bc", "B=d"},
		`A=\$B\\`:                        {`A=$B\`},
		`A=b\ `:                          {"A=b "},
		`A="\$x \"y\" \\ \z"`:            {`A=$x "y" \ \z`},
		`A='\n'`:                         {`A=\n`},
		"A=$HOME ${x} `y` *":             {"A=$HOME ${x} `y` *"},
		"A=b # no comment\n":             {"A=b # no comment"},
		"A=b=c":                          {"A=b=c"},
		"A=1\nB=2\nA=3\n":                {"B=2", "A=3"},
		"# comment \\\nA=still one\nB=c": {"B=c"},
		"\xef\xbb\xbfA=b":                {"A=b"},
		"A=é漢\n":                         {"A=é漢"},
		"A='\\''\n":                      nil, // below
	} {
		if strings.HasPrefix(text, `A='\''`) {
			if _, err := parseEnv("e", []byte(text)); err == nil {
				t.Errorf("%q was taken: single quotes know no escape", text)
			}
			continue
		}
		got, err := parseEnv("e", []byte(text))
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

// The user of a program may write the file, which the supervisor reads.
func TestALongCommentOfAnEnvFileTakesNoStack(t *testing.T) {
	inUse := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.StackInuse
	}
	before := inUse()
	env, err := parseEnv("e", []byte(strings.Repeat("#\\\n", largestFile/3)+"A=still one\nB=c"))
	if grown := int64(inUse() - before); grown > 1<<20 {
		t.Errorf("its stack grew by %d MiB", grown>>20)
	}
	if err != nil || !cmp.Equal(env, []string{"B=c"}) {
		t.Errorf("%q, %v", env, err)
	}
}

func TestFaultsOfAnEnvFileComeAllAtOnce(t *testing.T) {
	name := filepath.Join(t.TempDir(), "env")
	text := "A=b\nnonsense\n1B=c\nexport C=d\nD-E=f\nF='x\ny'\nG=\xff\nH=\"open\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env, err := ReadEnvFile(name, safefile.Who{})
	want := strings.ReplaceAll(`F:2:1: not a line of KEY=VALUE
F:3:1: "1B" is not a name for a variable: letters, digits and _ are allowed, and no digit at the start
F:4:1: "export C": no shell reads this file: leave export out
F:5:1: "D-E" is not a name for a variable: letters, digits and _ are allowed, and no digit at the start
F:8:1: G: its value is not UTF-8 text without NUL characters
F:9:1: H: the quote (") that opens on line 9 is not closed`, "F:", name+":")
	if err == nil || err.Error() != want || env != nil {
		t.Errorf("%v\ngot\n%v\nwant\n%s", env, err, want)
	}
	if _, err := ReadEnvFile(name+"x", safefile.Who{}); err == nil || err.Error() != name+"x: cannot be read: no such file or directory" {
		t.Error(err)
	}
	if err := os.WriteFile(name, []byte("A=b\nC=d\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if env, err = ReadEnvFile(name, safefile.Who{}); err != nil || !cmp.Equal(env, []string{"A=b", "C=d"}) {
		t.Errorf("%q, %v", env, err)
	}
}
