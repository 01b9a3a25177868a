package config

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

const everything = `
node: db-1
zookeeper:
  servers: [zk1]
  root: /prod/understudy
  name: second
  profile: fast
  lease: 2s
  auth: {scheme: digest, file: /etc/understudy/zk.secret}
  trusted_network: true
  tls: {ca_file: /etc/ca.pem, cert_file: /etc/cert.pem, key_file: /etc/key.pem, server_name: zk}
log: {level: debug, format: json}
http:
  listen: ":8437"
  token_file: /etc/understudy/token
  read_token_file: /etc/understudy/read
  hosts: [web.example]
  tls: {cert_file: /w, key_file: /wk}
fencing: {agent: {listen: ":8438", advertise: "db-1:8438", secret_file: /etc/understudy/agent.secret}}
watchdog: {device: /dev/watchdog1, mode: required}
services:
  one:
    command: "sh -c 'echo \"$HOME\" | cat' \\\n last"
    working_dir: /srv
    user: redis
    group: 1000
    umask: 027
    env: {LANG: de_DE, EMPTY: "", NUMBER: 010, ANSWER: yes}
    env_file: /etc/default/one
    limits: {nofile: 65536, core: 0, memlock: unlimited, stack: {soft: 8MiB, hard: 1GiB}, memory: 1MiB, cpu: 150%, tasks: 9}
    nice: -5
    oom_score_adj: 100
    inherit_env: [LANG, TZ]
    no_new_privileges: true
    capabilities: {bounding: [CAP_NET_BIND_SERVICE, CAP_CHOWN], ambient: [CAP_NET_BIND_SERVICE]}
    stop_signal: 3
    stop_timeout: 3s
    ready: {tcp: ":80", timeout: 4s}
    log: {file: /var/log/one.log, max_size: 1MiB, keep: 2}
    election: queue
    contain: strict
    priority: 7
    failback: true
    spread: jvm
    eligible: false
    moves: {max: 3, within: 1h}
    on_zookeeper_loss: failsafe
    grace_delay: 0s
    reload_signal: USR1
    reload_check: [test, -e, /etc/one]
    restart: {policy: always, delay: 2s, max_delay: 3s, give_up_after: 4, within: 5m, rejoin_after: 6s}
    health: {exec: check it, interval: 3s, timeout: 4s, failures: 5, start_delay: 6s}
    precheck: {exec: [test, -d, /srv], interval: 7s, timeout: 8s}
    hooks: {on_active: say active, on_standby: [say, standby], on_fence: {command: say fence, timeout: 1s}, on_give_up: {command: [say, no]}}
    fencing:
      methods:
        - exec: {command: fence-it --hard, timeout: 5s}
        - exec: {command: [x]}
        - agent: {}
        - agent: {timeout: 2s}
        - ssh: {user: root, key_file: /etc/understudy/id, known_hosts: /etc/understudy/known, address: "{host}:2222", command: sudo fence, timeout: 3s}
        - http: {url: "https://{host}/off", method: PUT, headers: {X-Node: "{node}"}, body: "{token}", status: [200, 204], bearer_file: /b, ca_file: /ca, timeout: 4s}
        - fence_agent: {command: fence_ipmilan, options: {ip: "{plug}"}, secrets: {password: /p}, plugs: {db-1: 10.0.0.1}, timeout: 6s}
        - http: {url: "http://a/"}
        - ssh: {user: root, key_file: /k, known_hosts: /h}
      on_failure: grace
`

func TestEveryKeyIsRead(t *testing.T) {
	got, err := load(everything)
	if err != nil {
		t.Fatal(err)
	}
	umask, nice, oom := Umask(0o27), -5, 100
	bounding := []Capability{unix.CAP_NET_BIND_SERVICE, unix.CAP_CHOWN}
	want := &Config{
		Node: "db-1",
		ZooKeeper: ZooKeeper{
			Servers: []ServerAddress{"zk1:2181"}, Root: "/prod/understudy", Name: "second", Profile: ProfileFast, Lease: 2 * time.Second,
			Auth: &ZooKeeperAuth{Scheme: "digest", File: "/etc/understudy/zk.secret"}, TrustedNetwork: true,
			TLS: &ZooKeeperTLS{CAFile: "/etc/ca.pem", CertFile: "/etc/cert.pem", KeyFile: "/etc/key.pem", ServerName: "zk"},
		},
		Log:      Logging{Level: "debug", Format: "json"},
		Watchdog: Watchdog{Device: "/dev/watchdog1", Mode: WatchdogRequired},
		HTTP: HTTPServer{
			Listen: ":8437", TokenFile: "/etc/understudy/token", ReadTokenFile: "/etc/understudy/read", Hosts: []string{"web.example"},
			TLS: &TLSFiles{CertFile: "/w", KeyFile: "/wk"},
		},
		Fencing: NodeFencing{Agent: &Agent{
			Listen: ":8438", Advertise: "db-1:8438", SecretFile: "/etc/understudy/agent.secret",
		}},
		Services: map[string]Service{"one": {
			Processes: []Process{{Name: MainProcess, Program: Program{
				Command:    Command{"sh", "-c", `echo "$HOME" | cat`, "last"},
				WorkingDir: "/srv", User: "redis", Group: "1000", Umask: &umask,
				Env:     map[string]string{"LANG": "de_DE", "EMPTY": "", "NUMBER": "010", "ANSWER": "yes"},
				EnvFile: "/etc/default/one",
				Limits: map[string]Limit{
					"nofile": {Soft: 65536, Hard: 65536}, "core": {}, "memlock": {Soft: Unlimited, Hard: Unlimited}, "stack": {Soft: 8 << 20, Hard: 1 << 30},
					"memory": {Soft: 1 << 20, Hard: 1 << 20}, "cpu": {150, 150, true}, "tasks": {Soft: 9, Hard: 9},
				},
				Nice: &nice, OOMScoreAdj: &oom, InheritEnv: InheritEnv{"LANG", "TZ"}, NoNewPrivs: true,
				Caps:       Capabilities{Bounding: &bounding, Ambient: []Capability{unix.CAP_NET_BIND_SERVICE}},
				StopSignal: Signal(syscall.SIGQUIT), StopTimeout: 3 * time.Second,
				Ready: Ready{TCP: ":80", Timeout: 4 * time.Second},
				Log:   LogFile{File: "/var/log/one.log", MaxSize: 1 << 20, Keep: 2},
			}}},
			Election: "queue", Contain: "strict", Priority: 7, Failback: true, Spread: "jvm", Eligible: false,
			Moves: Moves{Max: 3, Within: time.Hour}, OnLoss: OnLossFailsafe, GraceDelay: 0, ReloadSignal: Signal(syscall.SIGUSR1), ReloadCheck: Command{"test", "-e", "/etc/one"},
			Restart: Restart{
				Policy: "always", Delay: 2 * time.Second, MaxDelay: 3 * time.Second, GiveUpAfter: 4, Within: 5 * time.Minute,
				RejoinAfter: 6 * time.Second,
			},
			Health: HealthCheck{
				Exec: Command{"check", "it"}, Interval: 3 * time.Second, Timeout: 4 * time.Second, Failures: 5, StartDelay: 6 * time.Second,
			},
			Precheck: Precheck{Exec: Command{"test", "-d", "/srv"}, Interval: 7 * time.Second, Timeout: 8 * time.Second},
			Hooks: Hooks{
				OnActive:  Hook{Command: Command{"say", "active"}, Timeout: 10 * time.Second},
				OnStandby: Hook{Command: Command{"say", "standby"}, Timeout: 10 * time.Second},
				OnFence:   Hook{Command: Command{"say", "fence"}, Timeout: time.Second},
				OnGiveUp:  Hook{Command: Command{"say", "no"}, Timeout: 10 * time.Second},
			},
			Fencing: Fencing{
				Methods: []FenceMethod{
					{Exec: &FenceExec{Command: Command{"fence-it", "--hard"}, Timeout: 5 * time.Second}},
					{Exec: &FenceExec{Command: Command{"x"}, Timeout: 10 * time.Second}},
					{Agent: &FenceAsk{Timeout: 5 * time.Second}},
					{Agent: &FenceAsk{Timeout: 2 * time.Second}},
					{SSH: &FenceSSH{
						User: "root", KeyFile: "/etc/understudy/id", KnownHosts: "/etc/understudy/known", Address: "{host}:2222",
						Command: "sudo fence", Timeout: 3 * time.Second,
					}},
					{HTTP: &FenceHTTP{
						URL: "https://{host}/off", Method: "PUT", Headers: map[string]string{"X-Node": "{node}"}, Body: "{token}",
						Status: []int{200, 204}, BearerFile: "/b", CAFile: "/ca", Timeout: 4 * time.Second,
					}},
					{FenceAgent: &FenceProgram{
						Command: Command{"fence_ipmilan"}, Options: map[string]string{"ip": "{plug}"},
						Secrets: map[string]string{"password": "/p"}, Plugs: map[string]string{"db-1": "10.0.0.1"}, Timeout: 6 * time.Second,
					}},
					{HTTP: &FenceHTTP{URL: "http://a/", Timeout: 5 * time.Second}},
					{SSH: &FenceSSH{User: "root", KeyFile: "/k", KnownHosts: "/h", Timeout: 10 * time.Second}},
				},
				OnFailure: "grace",
			},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	given := map[string]bool{}
	text, err := Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	for key := range everyKey(t) {
		name := key[strings.LastIndex(key, ".")+1:]
		given[name] = strings.Contains(everything, name+":") || strings.Contains(string(text), name+":")
	}
	for _, elsewhere := range []string{"defaults", "include", "http", "after", "notify", "processes", "name", "oneshot", "undo", "undo_timeout", "undone", "needs_proof", "survives_boot", "nodes", "address", "ip", "announce", "mount", "directory", "type", "ocf", "params", "replicated", "role", "position", "promote", "follow", "positions_from", "max_lag", "state_dir", "demote", "prepare", "reclone", "copies", "attempts", "seen_by", "quorum", "warm", "follower"} {
		delete(given, elsewhere) // tested below, or in include_test.go, members_test.go, nodes_test.go, replicated_test.go and warm_test.go
	}
	for name, ok := range given {
		if !ok {
			t.Errorf("no test reads the key %s", name)
		}
	}
}

func TestWaysOfReadinessAndHealthAreRead(t *testing.T) {
	for text, want := range map[string]Ready{
		"{}":                              {},
		"{timeout: 1s}":                   {},
		"{notify: false}":                 {},
		"{notify: true}":                  {Notify: true, Timeout: 30 * time.Second},
		"{after: 1m}":                     {After: time.Minute},
		"{http: \"http://a/\"}":           {HTTP: "http://a/", Timeout: 30 * time.Second},
		"{exec: a b, timeout: 2s}":        {Exec: Command{"a", "b"}, Timeout: 2 * time.Second},
		"{tcp: \"[::1]:1\", timeout: 9s}": {TCP: "[::1]:1", Timeout: 9 * time.Second},
	} {
		got, err := load(head + "services: {s: {command: x, ready: " + text + "}}\n")
		if err != nil {
			t.Error(err)
			continue
		}
		if diff := cmp.Diff(want, got.Services["s"].Processes[0].Ready); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	got, err := load(head + "services: {s: {command: x, health: {http: \"http://a/\"}}, u: {command: x, health: {tcp: \":1\"}}}\n")
	if err != nil {
		t.Fatal(err)
	}
	if s, u := got.Services["s"].Health, got.Services["u"].Health; s.Way() != "http" || u.Way() != "tcp" || s.Interval != 5*time.Second {
		t.Errorf("%+v, %+v", s, u)
	}
}

func TestProcessesInheritWhatTheServiceGives(t *testing.T) {
	got, err := load(head + `
defaults: {stop_timeout: 7s, env: {A: default, D: default}, ready: {tcp: ":9"}, log: {file: /nobody.log, keep: 3}}
services:
  unit:
    user: www
    env: {A: service, B: service}
    limits: {core: 0}
    ready: {timeout: 5s}
    processes:
      - {name: vip, command: [ip, add], user: root, oneshot: true, undo: ip del, undo_timeout: 3s, undone: ip none, needs_proof: true, survives_boot: true, ready: {timeout: 1m}}
      - {name: web, command: nginx, env: {B: own}, ready: {http: "http://a/"}, log: {file: /web.log}, limits: {core: 1}}
      - {name: last, command: x, oneshot: true, undo: y}
`)
	if err != nil {
		t.Fatal(err)
	}
	term := Signal(syscall.SIGTERM)
	want := []Process{
		{Name: "vip", Oneshot: true, Undo: Command{"ip", "del"}, UndoTimeout: 3 * time.Second, Undone: Command{"ip", "none"}, NeedsProof: true, SurvivesBoot: true, Program: Program{
			Command: Command{"ip", "add"}, User: "root", Env: map[string]string{"A": "service", "B": "service", "D": "default"},
			Limits: map[string]Limit{"core": {}}, StopSignal: term, StopTimeout: 7 * time.Second, Ready: Ready{Timeout: time.Minute},
		}},
		{Name: "web", Program: Program{
			Command: Command{"nginx"}, User: "www", Env: map[string]string{"A": "service", "B": "own", "D": "default"},
			Limits: map[string]Limit{"core": {Soft: 1, Hard: 1}}, StopSignal: term, StopTimeout: 7 * time.Second,
			Ready: Ready{HTTP: "http://a/", Timeout: 5 * time.Second},
			Log:   LogFile{File: "/web.log", MaxSize: 50 << 20, Keep: 3},
		}},
		{Name: "last", Oneshot: true, Undo: Command{"y"}, UndoTimeout: 10 * time.Second, Program: Program{
			Command: Command{"x"}, User: "www", Env: map[string]string{"A": "service", "B": "service", "D": "default"},
			Limits: map[string]Limit{"core": {}}, StopSignal: term, StopTimeout: 7 * time.Second,
		}},
	}
	if diff := cmp.Diff(want, got.Services["unit"].Processes); diff != "" {
		t.Error(diff)
	}
}

func TestServiceWinsOverTheDefaults(t *testing.T) {
	got, err := load(head + `
defaults:
  command: [run-it]
  env: {A: default, B: default}
  limits: {nofile: 1, core: 0}
  ready: {tcp: ":1"}
  health: {exec: x, interval: 1s}
  hooks: {on_active: {command: a, timeout: 3s}}
  fencing: {methods: [{exec: {command: x}}]}
  restart: {delay: 2s, max_delay: 4s}
services:
  plain:
  own:
    env: {B: own}
    limits: {nofile: 2}
    ready: {notify: true}
    health: {tcp: ":1"}
    hooks: {on_active: b}
    fencing: {methods: []}
    restart: {max_delay: 5s}
  unit: {processes: [{name: p, command: q}]}
`)
	if err != nil {
		t.Fatal(err)
	}
	plain, own, unit := got.Services["plain"], got.Services["own"], got.Services["unit"]
	if p := plain.Processes[0]; p.Command[0] != "run-it" || p.Env["B"] != "default" || p.Ready.Way() != "tcp" || plain.Health.Way() != "exec" {
		t.Errorf("plain: %+v", plain)
	}
	p := own.Processes[0]
	if p.Env["A"] != "default" || p.Env["B"] != "own" || p.Limits["nofile"].Hard != 2 || len(p.Limits) != 2 || p.Ready.Way() != "notify" {
		t.Errorf("own: %+v", p)
	}
	if own.Health.Way() != "tcp" || own.Health.Exec != nil || own.Health.Interval != time.Second || own.Hooks.OnActive.Timeout != 3*time.Second ||
		own.Hooks.OnActive.Command[0] != "b" || len(own.Fencing.Methods) != 0 || own.Restart.Delay != 2*time.Second || own.Restart.MaxDelay != 5*time.Second {
		t.Errorf("own: %+v", own)
	}
	if p := unit.Processes[0]; p.Name != "p" || p.Command[0] != "q" || p.Ready.Way() != "" {
		t.Errorf("unit: %+v", p)
	}
}

func TestProcessesOfTheDefaultsStartFromEachService(t *testing.T) {
	got, err := load(head + `
defaults: {processes: [{name: a, command: b}, {name: c, command: d, user: root}]}
services: {one: {user: app}, two: {user: other, command: x}, three: {processes: [{name: e, command: f}]}}
`)
	if err != nil {
		t.Fatal(err)
	}
	one, two, three := got.Services["one"].Processes, got.Services["two"].Processes, got.Services["three"].Processes
	if len(one) != 2 || one[0].User != "app" || one[1].User != "root" || len(two) != 1 || two[0].Name != MainProcess || three[0].Name != "e" {
		t.Errorf("%+v\n%+v\n%+v", one, two, three)
	}
}

func TestSizeIsWrittenAsItIsRead(t *testing.T) {
	for text, want := range map[string]Size{"0": 0, "1": 1, "1023": 1023, "1KiB": 1024, "50MiB": 50 << 20, "3 GiB": 3 << 30, "2TiB": 2 << 40, "1536KiB": 1536 << 10, "7B": 7, "1MB": 1e6, "2kB": 2000} {
		var got, again Size
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%s: %d, %v", text, got, err)
		}
		if err := again.UnmarshalText([]byte(got.String())); err != nil || again != want {
			t.Errorf("%s: written as %s", text, got)
		}
	}
}
