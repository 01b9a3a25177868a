package config

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// small is the least that runs; node keeps the host's name out of the tests.
const small = `node: db-1
zookeeper:
  servers: [zk1, "zk2:2182", "[2001:db8::1]:2183", "[::1]"]
services:
  redis:
    command: [redis-server, /etc/redis.conf]
`

func TestSmallFileGetsEveryDefault(t *testing.T) {
	got, err := Load("u.yaml", []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{
		Node: "db-1",
		ZooKeeper: ZooKeeper{
			Servers:        []Server{"zk1:2181", "zk2:2182", "[2001:db8::1]:2183", "[::1]:2181"},
			Root:           "/understudy",
			SessionTimeout: 6 * time.Second,
		},
		Log: Log{Level: "info", Format: "text"},
		Services: map[string]Service{"redis": {
			Command:     Command{"redis-server", "/etc/redis.conf"},
			Election:    "race",
			Contain:     "auto",
			GraceDelay:  2 * time.Second,
			StopSignal:  Signal(syscall.SIGTERM),
			StopTimeout: 10 * time.Second,
			Restart: Restart{
				Policy: "on-failure", Delay: time.Second, MaxDelay: 30 * time.Second,
				GiveUpAfter: 5, Within: 2 * time.Minute, RejoinAfter: time.Minute,
			},
			Fencing: Fencing{OnFailure: "refuse"},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

const full = `
node: db-1
zookeeper:
  servers: [zk1]
  root: /prod/understudy
  session_timeout: 4s
  auth: {scheme: digest, file: /etc/understudy/zk.secret}
log: {level: debug, format: json}
defaults:
  env: {TZ: UTC, LANG: C}
  stop_timeout: 3s
  restart: {delay: 2s}
  fencing:
    methods: [{exec: {command: fence-it --hard, timeout: 5s}}]
    on_failure: grace
services:
  one:
    command: "sh -c 'echo \"$HOME\" | cat' \\\n last"
    working_dir: /srv
    env: {LANG: de_DE, EMPTY: "", NUMBER: 010, ANSWER: yes}
    election: queue
    contain: strict
    grace_delay: 0s
    stop_signal: 3
    restart: {policy: always, give_up_after: 0}
  two:
    command: [sleep, 1.50]
    stop_signal: sigint
    fencing: {methods: []}
`

func TestEveryKeyIsRead(t *testing.T) {
	got, err := Load("u.yaml", []byte(full))
	if err != nil {
		t.Fatal(err)
	}
	base := DefaultService()
	base.StopTimeout = 3 * time.Second
	base.Restart.Delay = 2 * time.Second
	base.Fencing = Fencing{
		Methods: []FenceMethod{
			{Exec: &FenceExec{Command: Command{"fence-it", "--hard"}, Timeout: 5 * time.Second}},
		},
		OnFailure: "grace",
	}
	one, two := base, base
	one.Command = Command{"sh", "-c", `echo "$HOME" | cat`, "last"}
	one.WorkingDir = "/srv"
	one.Env = map[string]string{"TZ": "UTC", "LANG": "de_DE", "EMPTY": "", "NUMBER": "010", "ANSWER": "yes"}
	one.Election, one.Contain, one.GraceDelay = "queue", "strict", 0
	one.StopSignal = Signal(syscall.SIGQUIT)
	one.Restart.Policy, one.Restart.GiveUpAfter = "always", 0
	two.Command = Command{"sleep", "1.50"}
	two.Env = map[string]string{"TZ": "UTC", "LANG": "C"}
	two.StopSignal = Signal(syscall.SIGINT)
	two.Fencing.Methods = nil
	want := &Config{
		Node: "db-1",
		ZooKeeper: ZooKeeper{
			Servers: []Server{"zk1:2181"}, Root: "/prod/understudy", SessionTimeout: 4 * time.Second,
			Auth: &Auth{Scheme: "digest", File: "/etc/understudy/zk.secret"},
		},
		Log:      Log{Level: "debug", Format: "json"},
		Services: map[string]Service{"one": one, "two": two},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"one", "two"}, got.ServiceNames()); diff != "" {
		t.Error(diff)
	}
}

func TestAnchorsAndMergeKeysAreFollowed(t *testing.T) {
	got, err := Load("u.yaml", []byte(`
node: db-1
zookeeper: {servers: [zk1]}
defaults: {stop_timeout: 1s}
services:
  one: &one
    command: &command [sleep, "9"]
    stop_timeout: 2s
    grace_delay: 3s
  two:
    <<: *one
    grace_delay: 4s
  three:
    <<: [{stop_timeout: 5s}, *one]
  four: {command: *command}
`))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][2]time.Duration{
		"one": {2, 3}, "two": {2, 4}, "three": {5, 3}, "four": {1, 2},
	} {
		s := got.Services[name]
		if s.StopTimeout != want[0]*time.Second || s.GraceDelay != want[1]*time.Second || s.Command[1] != "9" {
			t.Errorf("%s: %v %v %v", name, s.StopTimeout, s.GraceDelay, s.Command)
		}
	}
}

func TestMissingNodeIsTheHostName(t *testing.T) {
	got, err := Load("u.yaml", []byte(strings.TrimPrefix(small, "node: db-1\n")))
	if err != nil {
		t.Fatal(err)
	}
	if host, _ := os.Hostname(); got.Node != host {
		t.Errorf("node %q, want %q", got.Node, host)
	}
}

func TestServicesShareNothing(t *testing.T) {
	got, err := Load("u.yaml", []byte(`
node: n
zookeeper: {servers: [zk1]}
defaults: {env: {A: a}, command: [x]}
services: {one: {}, two: {env: {A: b}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	if got.Services["one"].Env["A"] != "a" || got.Services["two"].Env["A"] != "b" {
		t.Errorf("env: %v and %v", got.Services["one"].Env, got.Services["two"].Env)
	}
}

func TestFileThatCannotBeReadSaysWhyInOneLine(t *testing.T) {
	dir := t.TempDir()
	fifo, secret := filepath.Join(dir, "fifo"), filepath.Join(dir, "unreadable")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(secret, []byte(small), 0o000); err != nil {
		t.Fatal(err)
	}
	cases := map[string]string{
		filepath.Join(dir, "none"): "no such file or directory",
		dir:                        "it is a directory",
		fifo:                       "it is not a regular file",
	}
	if os.Getuid() != 0 {
		cases[secret] = "permission denied"
	}
	for name, why := range cases {
		_, err := LoadFile(name)
		if want := name + ": cannot be read: " + why; err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

func TestEveryExampleLoads(t *testing.T) {
	names, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, name := range names {
		if _, err := LoadFile(name); err != nil {
			t.Error(err)
		}
	}
}

func TestThousandServicesLoadQuickly(t *testing.T) {
	var b strings.Builder
	b.WriteString("node: n\nzookeeper: {servers: [zk1]}\nservices:\n")
	for i := range 1000 {
		b.WriteString("  s" + strings.Repeat("x", i%5) + Signal(i+100).String() + ":\n    command: [sleep, \"1\"]\n")
	}
	began := time.Now()
	got, err := Load("u.yaml", []byte(b.String()))
	if err != nil || len(got.Services) != 1000 {
		t.Fatalf("%v, %v", got, err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestAliasesDoNotMultiplyWork(t *testing.T) {
	var b strings.Builder
	b.WriteString("node: n\nzookeeper: {servers: [zk1]}\ndefaults:\n  command: &c [a" + strings.Repeat(", a", 5000) + "]\nservices:\n")
	for i := range 5000 {
		b.WriteString("  " + Signal(i+100).String() + ": {command: *c}\n")
	}
	_, err := Load("u.yaml", []byte(b.String()))
	if err == nil || !strings.Contains(err.Error(), "too many values") {
		t.Error(err)
	}
}
