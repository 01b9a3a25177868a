package config

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
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

// loadFile reads a file and all that it includes.
func loadFile(name string) (*Config, error) {
	r := Read(name, "")
	return r.Config, r.Err()
}

// load reads text as if it stood in a file.
func load(src string) (*Config, error) {
	r := newLoader("u.yaml", host).load([]byte(src))
	return r.Config, r.Err()
}

func TestSmallFileGetsEveryDefault(t *testing.T) {
	got, err := load(small)
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{
		Node: "db-1",
		ZooKeeper: ZooKeeper{
			Servers: []ServerAddress{"zk1:2181", "zk2:2182", "[2001:db8::1]:2183", "[::1]:2181"},
			Root:    "/understudy",
			Lease:   3 * time.Second,
		},
		Log:      Logging{Level: "info", Format: "text"},
		Watchdog: Watchdog{Device: "/dev/watchdog", Mode: WatchdogOff},
		Services: map[string]Service{"redis": {
			Processes: []Process{{Name: "main", Program: Program{
				Command:     Command{"redis-server", "/etc/redis.conf"},
				StopSignal:  Signal(syscall.SIGTERM),
				StopTimeout: 10 * time.Second,
			}}},
			Election:     "race",
			Contain:      "auto",
			Eligible:     true,
			Moves:        Moves{Within: 10 * time.Minute},
			OnLoss:       OnLossStop,
			GraceDelay:   2 * time.Second,
			ReloadSignal: Signal(syscall.SIGHUP),
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

func TestAnchorsAndMergeKeysAreFollowed(t *testing.T) {
	got, err := load(`
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
`)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][2]time.Duration{
		"one": {2, 3}, "two": {2, 4}, "three": {5, 3}, "four": {1, 2},
	} {
		s := got.Services[name]
		if s.Processes[0].StopTimeout != want[0]*time.Second || s.GraceDelay != want[1]*time.Second || s.Processes[0].Command[1] != "9" {
			t.Errorf("%s: %v %v %v", name, s.Processes[0].StopTimeout, s.GraceDelay, s.Processes[0].Command)
		}
	}
}

func TestMissingNodeIsTheHostName(t *testing.T) {
	got, err := load(strings.TrimPrefix(small, "node: db-1\n"))
	if err != nil {
		t.Fatal(err)
	}
	if host, _ := os.Hostname(); got.Node != host {
		t.Errorf("node %q, want %q", got.Node, host)
	}
}

func TestServicesShareNothing(t *testing.T) {
	got, err := load(`
node: n
zookeeper: {servers: [zk1]}
defaults: {env: {A: a}, command: [x]}
services: {one: {}, two: {env: {A: b}}}
`)
	if err != nil {
		t.Fatal(err)
	}
	if got.Services["one"].Processes[0].Env["A"] != "a" || got.Services["two"].Processes[0].Env["A"] != "b" {
		t.Errorf("env: %v and %v", got.Services["one"].Processes[0].Env, got.Services["two"].Processes[0].Env)
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
		"/tmp":                     "it is a directory",
		fifo:                       "it is not a regular file",
	}
	if os.Getuid() != 0 {
		cases[secret] = "permission denied"
	}
	for name, why := range cases {
		_, err := loadFile(name)
		if want := name + ": cannot be read: " + why; err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
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
	got, err := load(b.String())
	if err != nil || len(got.Services) != 1000 {
		t.Fatalf("%v, %v", got, err)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("took %v", took)
	}
}

func TestAliasesDoNotMultiplyWork(t *testing.T) {
	var b strings.Builder
	b.WriteString("node: n\nzookeeper: {servers: [zk1]}\ndefaults:\n  command: &c [a" + strings.Repeat(", a", 5000) + "]\nservices:\n")
	for i := range 5000 {
		b.WriteString("  " + Signal(i+100).String() + ": {command: *c}\n")
	}
	_, err := load(b.String())
	if err == nil || !strings.Contains(err.Error(), "too many values") {
		t.Error(err)
	}
}

// Another's file may name a device, which does something when it is opened. What is no file is not opened: a pipe would show it.
func TestWhatIsNoFileIsNotOpened(t *testing.T) {
	dir := tree(t, map[string]string{"u.yaml": head + "include: [pipe]\n"})
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	var ours atomic.Bool
	opened := make(chan bool)
	go func() {
		f, err := os.OpenFile(pipe, os.O_WRONLY, 0) // returns when there is a reader
		if err == nil {
			f.Close()
		}
		opened <- ours.Load()
	}()
	for _, read := range []func(string, string) LoadResult{Read, ReadElsewhere} {
		for range 100 {
			if r := read(filepath.Join(dir, "u.yaml"), ""); !strings.Contains(r.Err().Error(), "pipe cannot be read: it is not a regular file") {
				t.Fatal(r.Err())
			}
		}
	}
	ours.Store(true)
	f, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if !<-opened {
		t.Error("the pipe was opened")
	}
}
