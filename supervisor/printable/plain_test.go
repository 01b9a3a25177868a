package printable

import (
	"strings"
	"testing"
)

func TestPlainNamesMeanNothingElse(t *testing.T) {
	for text, want := range map[string][3]bool{
		"db-1": {true, true, true}, "db-1.example.": {true, true, true}, "10.0.0.1": {true, true, true}, "fd00::1": {true, true, true}, "_x": {true, true, true},
		"10.0.0.1:80": {true, true, true}, "a@b": {true, false, false}, "[fe80::1%eth0]:80": {false, false, true},
		strings.Repeat("a", longestName): {true, true, true}, strings.Repeat("a", longestName+1): {},
		"": {}, "-x": {}, ".": {}, "..": {}, ".x": {}, "a/b": {}, "a b": {}, " ": {}, "a\n": {}, "a\nb": {}, "\x1b[2J": {}, "a'": {}, `a"`: {}, `a\`: {}, "a,b": {}, "a=b": {},
		"a;b": {}, "a&b": {}, "a$b": {}, "a`b": {}, "a?b": {}, "a#b": {}, "é": {}, "a\x00": {}, "a\u2028": {}, "\xff": {},
	} {
		if got := [3]bool{IsName(text), IsHost(text), IsAddress(text)}; got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestAPortIsParted(t *testing.T) {
	for text, want := range map[string][2]string{
		"db-1": {"db-1", ""}, "10.0.0.1:6380": {"10.0.0.1", "6380"}, "[fd00::1]:6380": {"fd00::1", "6380"}, "fd00::1": {"fd00::1", ""}, "": {"", ""},
		"a:b": {"a:b", ""}, "a:0": {"a:0", ""}, "a:65536": {"a:65536", ""}, "a:-1": {"a:-1", ""}, "a b:1": {"a b:1", ""}, "-h:1": {"-h:1", ""}, ":1": {":1", ""},
	} {
		if host, port := SplitPort(text); host != want[0] || port != want[1] {
			t.Errorf("%q: %q, %q", text, host, port)
		}
	}
}
