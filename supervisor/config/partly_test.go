package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A command that only talks to ZooKeeper works as long as that part is right.
func TestTheZooKeeperPartIsReadFromAFaultyFile(t *testing.T) {
	const servers = "zookeeper:\n  servers: [zk1]\n  # nothing else\n  root: /other\n"
	for name, c := range map[string]struct{ text, fails string }{
		"a key misspelt":   {servers + "services: {web: {comand: [sleep, \"1\"]}}\n", ""},
		"no YAML after it": {servers + "services: {web: {command: [sleep\n", "not YAML"},
		"nothing else":     {servers, ""},
		"its own fault":    {"zookeeper: {servers: [zk1], rot: /x}\nservices: {}\n", "unknown key"},
		"no YAML in it":    {"zookeeper: {servers: [zk1\nservices: {}\n", "not YAML"},
	} {
		file := filepath.Join(t.TempDir(), "u.yaml")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, ignored, err := LoadPartly(file)
		if c.fails != "" {
			if err == nil || !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || (len(ignored) == 0) != (name == "nothing else") || got.ZooKeeper.Root != "/other" && name != "" {
			t.Errorf("%s: %+v, ignored %v, %v", name, got, ignored, err)
		}
	}
}

func TestWhatAMachineLacksIsNamed(t *testing.T) {
	dir := t.TempDir()
	s := func(g Program) Service {
		return Service{Processes: []Process{{Program: g}, {Program: Program{Command: []string{"/mounted/later"}}}}}
	}
	for _, c := range []struct {
		g    Program
		want string
	}{
		{Program{Command: []string{"sleep", "1"}, User: "root", Group: "0", WorkingDir: dir}, ""},
		{Program{Command: []string{"/no/such", "1"}}, "/no/such: no such file or directory"},
		{Program{Command: []string{"sleep"}, User: "no-such-user"}, "there is no user no-such-user"},
		{Program{Command: []string{"sleep"}, Group: "no-such-group"}, "there is no group no-such-group"},
		{Program{Command: []string{"sleep"}, WorkingDir: dir + "/x"}, "working_dir " + dir + "/x: no such file or directory"},
		{Program{Command: []string{"sleep"}, EnvFile: dir + "/env"}, "env_file " + dir + "/env: no such file or directory"},
	} {
		got := ""
		if err := s(c.g).Lacks(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%+v: %q, want %q", c.g, got, c.want)
		}
	}
}

// A standby that has the program, but not what makes it the active one, could not take it over.
func TestWhatAPromotionNeedsIsLacked(t *testing.T) {
	gone := Command{"/no/such", "x"}
	for want, change := range map[string]func(*Service){
		"promote: /no/such: no such file or directory":         func(s *Service) { s.Warm.Promote.Exec = gone },
		"role: /no/such: no such file or directory":            func(s *Service) { s.Replicated.Role = gone },
		"hooks.on_active: /no/such: no such file or directory": func(s *Service) { s.Hooks.OnActive.Command = gone },
		"health: /no/such: no such file or directory":          func(s *Service) { s.Health.Exec = gone },
		"ready: /no/such: no such file or directory":           func(s *Service) { s.Processes[0].Ready.Exec = gone },
		"<nil>": func(s *Service) { s.Hooks.OnFence.Command, s.Warm.Demote.Exec = gone, gone }, // it is active all the same
	} {
		s := DefaultService("true")
		s.Warm = &Warm{Promote: Order{Exec: Command{"true"}}}
		s.Replicated = s.Warm.copies()
		change(&s)
		if got := fmt.Sprint(s.Lacks()); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		s.Processes = append(s.Processes, Process{}) // the first may mount what they are on
		if err := s.Lacks(); err != nil {
			t.Errorf("with a second process: %v", err)
		}
	}
}
