package config

import (
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWordsAreSplitAsAShellWould(t *testing.T) {
	for line, want := range map[string][]string{
		"":                            nil,
		"  \t\n ":                     nil,
		"sleep 10":                    {"sleep", "10"},
		"  a\tb\nc  ":                 {"a", "b", "c"},
		`a 'b c' "d e"`:               {"a", "b c", "d e"},
		`a'b'"c"d`:                    {"abcd"},
		`'' ""`:                       {"", ""},
		`a\ b \\ \' \"`:               {"a b", `\`, "'", `"`},
		`'a\b' "a\b\$\"\\"`:           {`a\b`, `a\b$"\`},
		"a \\\n b\\\nc":               {"a", "bc"},
		"\"a\\\nb\"":                  {"ab"},
		`$HOME *.txt ~ #no ${x} a=b`:  {"$HOME", "*.txt", "~", "#no", "${x}", "a=b"},
		`sh -c 'a | b && c > d; e &'`: {"sh", "-c", "a | b && c > d; e &"},
		`a \| "&"`:                    {"a", "|", "&"},
		`é "漢 字"`:                     {"é", "漢 字"},
	} {
		got, err := SplitWords(line)
		if err != nil {
			t.Errorf("%q: %v", line, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", line, diff)
		}
	}
}

func TestSignalIsReadByNameAndNumber(t *testing.T) {
	for word, want := range map[string]syscall.Signal{
		"TERM": syscall.SIGTERM, "SIGTERM": syscall.SIGTERM, "sigint": syscall.SIGINT, "hup": syscall.SIGHUP,
		"15": syscall.SIGTERM, "34": 34, "USR1": syscall.SIGUSR1, "WINCH": syscall.SIGWINCH,
	} {
		var s Signal
		if err := s.UnmarshalText([]byte(word)); err != nil || syscall.Signal(s) != want {
			t.Errorf("%s: %v, %v", word, s, err)
		}
		var again Signal
		if text, _ := s.MarshalText(); again.UnmarshalText(text) != nil || again != s {
			t.Errorf("%s became %s", word, text)
		}
	}
	for _, word := range []string{"", "0", "65", "-1", "SIG", "TERMINATE", "9999999999999999999"} {
		if err := new(Signal).UnmarshalText([]byte(word)); err == nil {
			t.Errorf("%q was taken", word)
		}
	}
}

func TestServersAreReadFromOneWord(t *testing.T) {
	got, err := ParseServers("zk1, zk2:2182,[::1]:2183,10.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]ServerAddress{"zk1:2181", "zk2:2182", "[::1]:2183", "10.0.0.1:2181"}, got); diff != "" {
		t.Error(diff)
	}
	for _, list := range []string{"", "a,", ":2181", "a:", "a:0", "a:x", "[a]:1", "[::1", "[::1]x", "http://a", "a b", "a:1/x", "u@h:1", "::1"} {
		if got, err := ParseServers(list); err == nil {
			t.Errorf("%q was taken as %q", list, got)
		}
	}
}

func TestNearestWordIsFound(t *testing.T) {
	words := []string{"command", "election", "stop_timeout", "env", "address"}
	for word, want := range map[string]string{
		"comand": "command", "COMMAND": "command", "electoin": "election", "stoptimeout": "stop_timeout", "evn": "env", "VIP": "address", "ExecStart": "command", "virtual_ipaddress": "address",
		"colour": "", "": "", "x": "", strings.Repeat("command", 20): "",
	} {
		if got := DidYouMean(word, words); got != "" != (want != "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
	for word, of := range map[string][]string{"session_timeout": {"servers", "lease"}, "stopwaitsecs": {"command", "stop_timeout"}, "mem_limit": {"log", "limits"}, "--session-timeout": {"--stop-timeout", "--lease"}} {
		if got := DidYouMean(word, of); got != ` (did you mean "`+of[1]+`"?)` {
			t.Errorf("%s: %q", word, got)
		}
	}
}
