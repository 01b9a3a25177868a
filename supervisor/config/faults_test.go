package config

import (
	"errors"
	"strings"
	"testing"
)

const head = "node: n\nzookeeper: {servers: [zk1]}\n"

// service puts lines into an otherwise sound service; its keys start at line 5, column 5.
func service(lines string) string {
	return head + "services:\n  s:\n    " + strings.ReplaceAll(lines, "\n", "\n    ") + "\n    command: x\n"
}

// Each file is refused with exactly these lines, in this order.
var broken = map[string]struct {
	src  string
	want string
}{
	// The file as a whole.
	"empty":        {"", "1:1: is empty: write at least"},
	"blank":        {"  \n\n", "1:1: is empty: write at least"},
	"comments":     {"# nothing\n# here\n", "1:1: is empty: write at least"},
	"null":         {"~\n", "1:1: is empty: write at least"},
	"only a line":  {"---\n", "1:1: is empty: write at least"},
	"a list":       {"- node: n\n", "1:1: a list where keys such as zookeeper: and services: are expected"},
	"a word":       {"\n hello\n", `2:2: the value "hello" where keys such as zookeeper: and services: are expected`},
	"second":       {head + "services: {s: {command: x}}\n---\nnode: m\n", "4:1: a second document: a file holds one"},
	"second empty": {head + "services: {s: {command: x}}\n---\n", "4:1: a second document: a file holds one"},
	"nothing in it": {
		"node: n\n",
		"1:1: services: missing: there is nothing to run\n1:1: zookeeper.servers: missing: list the ensemble",
	},

	// Not YAML.
	"tab":               {head + "services:\n\ts: {command: x}\n", "4:1: not YAML: found character that cannot start any token"},
	"unclosed list":     {head + "services:\n  s: {command: [a, b}\n", "4:3: not YAML: "},
	"unclosed quote":    {head + "services:\n  s:\n    command: \"a b\n    env: {A: b}\n", "5:5: not YAML: found unexpected end of stream"},
	"bad indentation":   {head + "services:\n  s:\n    command: x\n   env: {}\n", "6:4: not YAML: "},
	"no colon":          {head + "services:\n  s:\n    command: x\n    election\n", "6:5: not YAML: could not find expected ':'"},
	"unknown anchor":    {head + "services:\n  s: *nowhere\n", "4:3: not YAML: unknown anchor 'nowhere' referenced"},
	"not UTF-8":         {head + "services:\n  s:\n    command: \xff\xfe\n", "5:5: not YAML: "},
	"control character": {head + "services:\n  s:\n    command: a\x01b\n", "5:5: not YAML: control characters are not allowed"},
	"two colons":        {head + "services:\n  s:\n    command: a: b\n", "5:5: not YAML: mapping values are not allowed"},
	"late in a long file": {
		head + "services:\n  s:\n    command: [a,\n      b,\n      c]\n    env:\n      A: [\n    election: race\n", "9:7: not YAML: ",
	},

	// Keys.
	"unknown at the top":     {head + "servces: {s: {command: x}}\n", `3:1: servces: unknown key (did you mean "services"?)`},
	"unknown in zookeeper":   {"node: n\nzookeeper: {servers: [a], sesion_timeout: 4s}\nservices: {s: {command: x}}\n", `2:27: zookeeper.sesion_timeout: unknown key (did you mean "session_timeout"?)`},
	"unknown in a service":   {service("stop_timout: 5s"), `5:5: services.s.stop_timout: unknown key (did you mean "stop_timeout"?)`},
	"unknown in restart":     {service("restart: {polcy: never}"), `5:15: services.s.restart.polcy: unknown key (did you mean "policy"?)`},
	"unknown in fencing":     {service("fencing: {method: []}"), `5:15: services.s.fencing.method: unknown key (did you mean "methods"?)`},
	"unknown in a method":    {service("fencing: {methods: [{exce: {command: x}}]}"), `5:26: services.s.fencing.methods[0].exce: unknown key (did you mean "exec"?)`},
	"unknown in exec":        {service("fencing: {methods: [{exec: {command: x, timout: 1s}}]}"), `5:45: services.s.fencing.methods[0].exec.timout: unknown key (did you mean "timeout"?)`},
	"unknown in auth":        {"node: n\nzookeeper:\n  servers: [a]\n  auth: {scheme: digest, file: /f, user: u}\nservices: {s: {command: x}}\n", "4:36: zookeeper.auth.user: unknown key"},
	"unknown in log":         {head + "log: {levle: info}\nservices: {s: {command: x}}\n", `3:7: log.levle: unknown key (did you mean "level"?)`},
	"unknown, nothing near":  {service("colour: red"), "5:5: services.s.colour: unknown key"},
	"unknown in defaults":    {head + "defaults: {elction: race}\nservices: {s: {command: x}}\n", `3:12: defaults.elction: unknown key (did you mean "election"?)`},
	"a service's at the top": {head + "stop_timeout: 4s\nservices: {s: {command: x}}\n", "3:1: stop_timeout: unknown key: it belongs to a service, or under defaults:"},
	"the top's in a service": {service("zookeeper: {}"), "5:5: services.s.zookeeper: unknown key: it belongs to the top of the file"},
	"misspelt, not missing":  {head + "services:\n  s:\n    comand: x\n", `5:5: services.s.comand: unknown key (did you mean "command"?)`},
	"odd key":                {service(`"a b\n": 1`), `5:5: services.s."a b\n": unknown key`},
	"repeated":               {service("election: race\nelection: queue"), "6:5: services.s.election: repeated: it was given on line 5"},
	"repeated service":       {head + "services:\n  s: {command: x}\n  s: {command: y}\n", "5:3: services.s: repeated: it was given on line 4"},
	"repeated variable":      {service("env:\n  A: a\n  A: b"), "7:7: services.s.env.A: repeated: it was given on line 6"},
	"repeated at the top":    {head + "services: {s: {command: x}}\nnode: m\n", "4:1: node: repeated: it was given on line 1"},
	"a list as a key":        {service("[a]: b"), "5:5: services.s: a list where a key is expected"},
	"merged scalar":          {service("<<: 5"), `5:9: services.s: the value "5" after <<: where a mapping is expected`},
	"merges itself":          {head + "services:\n  s: &s\n    <<: *s\n    command: x\n", "4:6: services.s: mappings merge one another too deeply"},
	"not yet: health":        {service("health: {tcp: \":1\"}"), "5:5: services.s.health: not supported by this version yet"},
	"not yet: http":          {head + "http: {listen: \":80\"}\nservices: {s: {command: x}}\n", "3:1: http: not supported by this version yet"},
	"not yet: include":       {head + "include: [a]\nservices: {s: {command: x}}\n", "3:1: include: not supported by this version yet"},
	"not yet: tls":           {"node: n\nzookeeper: {servers: [a], tls: {}}\nservices: {s: {command: x}}\n", "2:27: zookeeper.tls: not supported by this version yet"},
	"not yet: ssh":           {service("fencing: {methods: [{ssh: {user: root}}]}"), "5:26: services.s.fencing.methods[0].ssh: not supported by this version yet"},
	"nearly not yet":         {service("helth: {}"), `5:5: services.s.helth: unknown key (did you mean "health"?)`},

	// Types.
	"zookeeper: a word":   {"node: n\nzookeeper: zk1\nservices: {s: {command: x}}\n", `2:12: zookeeper: the value "zk1" where a mapping (key: value) is expected`},
	"servers: a word":     {"node: n\nzookeeper:\n  servers: zk1:2181\nservices: {s: {command: x}}\n", `3:12: zookeeper.servers: the value "zk1:2181" where a list is expected`},
	"services: a list":    {head + "services:\n  - command: x\n", "4:3: services: a list where a mapping (key: value) is expected"},
	"services: nothing":   {head + "services:\n", "3:1: services: missing: there is nothing to run"},
	"service: a word":     {head + "services:\n  s: sleep\n", `4:6: services.s: the value "sleep" where a mapping (key: value) is expected`},
	"service: nothing":    {head + "services:\n  s:\n", "4:3: services.s.command: missing: say which program to run"},
	"command: nothing":    {head + "services:\n  s:\n    command:\n", "5:5: services.s.command: has no value: write one, or leave the key out"},
	"command: empty list": {head + "services:\n  s:\n    command: []\n", "5:14: services.s.command: missing: say which program to run"},
	"command: empty text": {head + "services:\n  s:\n    command: \"\"\n", "5:14: services.s.command: missing: say which program to run"},
	"command: a mapping":  {head + "services:\n  s:\n    command: {a: b}\n", "5:14: services.s.command: a mapping where a list of words or one string is expected"},
	"command: no program": {head + "services:\n  s:\n    command: [\"\", x]\n", "5:14: services.s.command: the program's name is empty"},
	"command: empty item": {head + "services:\n  s:\n    command:\n      - x\n      -\n", `7:8: services.s.command[1]: has no value: write "" for an empty one`},
	"command: nested":     {head + "services:\n  s:\n    command: [sh, [-c]]\n", "5:19: services.s.command[1]: a list where text is expected"},
	"command: quote":      {head + "services:\n  s:\n    command: \"it's\"\n", "5:14: services.s.command: a single quote (') is not closed"},
	"command: double":     {head + "services:\n  s:\n    command: 'a \"b'\n", `5:14: services.s.command: a double quote (") is not closed`},
	"command: backslash":  {head + "services:\n  s:\n    command: a \\\n", "5:14: services.s.command: a backslash at the end quotes nothing"},
	"command: pipe":       {head + "services:\n  s:\n    command: a | b\n", `5:14: services.s.command: no shell runs this, so "|" would be an argument`},
	"command: NUL":        {head + "services:\n  s:\n    command: [a, \"b\\0\"]\n", "5:18: services.s.command[1]: an argument must not contain a NUL character"},
	"command: NUL, text":  {head + "services:\n  s:\n    command: \"a b\\0\"\n", "5:14: services.s.command: an argument must not contain a NUL character"},
	"working_dir: a list": {service("working_dir: [a]"), "5:18: services.s.working_dir: a list where text is expected"},
	"env: a list":         {service("env: [A=b]"), "5:10: services.s.env: a list where a mapping (key: value) is expected"},
	"env: nothing":        {service("env:\n  A:"), "6:7: services.s.env.A: has no value: write one, or leave the key out"},
	"env: a mapping":      {service("env: {A: {b: c}}"), "5:14: services.s.env.A: a mapping where text is expected"},
	"duration: a number":  {service("stop_timeout: 10"), `5:19: services.s.stop_timeout: "10" has no unit: write 10s for seconds`},
	"duration: words":     {service("stop_timeout: 10 seconds"), `5:19: services.s.stop_timeout: "10 seconds" is not a duration such as 500ms, 1.5s or 2m`},
	"duration: days":      {service("restart:\n  within: 1d"), `6:15: services.s.restart.within: "1d" is not a duration`},
	"duration: a list":    {service("grace_delay: [1s]"), "5:18: services.s.grace_delay: a list where a duration is expected"},
	"duration: nothing":   {service("grace_delay:"), "5:5: services.s.grace_delay: has no value"},
	"number: a word":      {service("restart: {give_up_after: many}"), `5:30: services.s.restart.give_up_after: "many" is not a whole number`},
	"number: a fraction":  {service("restart: {give_up_after: 1.5}"), `5:30: services.s.restart.give_up_after: "1.5" is not a whole number`},
	"restart: a word":     {service("restart: always"), `5:14: services.s.restart: the value "always" where a mapping (key: value) is expected`},
	"methods: a mapping":  {service("fencing: {methods: {exec: {}}}"), "5:24: services.s.fencing.methods: a mapping where a list is expected"},
	"tag":                 {service("election: !custom race"), "5:15: services.s.election: the tag !custom is not understood"},
	"binary":              {service("working_dir: !!binary L3Jvb3Q="), "5:18: services.s.working_dir: the tag !!binary is not understood"},

	// Values.
	"election":             {service("election: quue"), `5:15: services.s.election: "quue" must be race or queue (did you mean "queue"?)`},
	"contain":              {service("contain: docker"), `5:14: services.s.contain: "docker" must be auto, cgroup, pidns or strict`},
	"policy":               {service("restart: {policy: on_failure}"), `5:23: services.s.restart.policy: "on_failure" must be on-failure, always or never (did you mean "on-failure"?)`},
	"on_failure":           {service("fencing: {on_failure: refse}"), `5:27: services.s.fencing.on_failure: "refse" must be refuse or grace (did you mean "refuse"?)`},
	"level":                {head + "log: {level: warning}\nservices: {s: {command: x}}\n", `3:14: log.level: "warning" must be trace, debug, info, warn or error`},
	"format":               {head + "log: {format: jsn}\nservices: {s: {command: x}}\n", `3:15: log.format: "jsn" must be text or json (did you mean "json"?)`},
	"signal":               {service("stop_signal: TREM"), `5:18: services.s.stop_signal: "TREM" is not a signal (did you mean "TERM"?)`},
	"signal number":        {service("stop_signal: 99"), "5:18: services.s.stop_signal: 99 is not a signal: numbers go from 1 to 64"},
	"signal that freezes":  {service("stop_signal: STOP"), "5:18: services.s.stop_signal: STOP freezes or wakes a program"},
	"relative working_dir": {service("working_dir: data"), `5:18: services.s.working_dir: "data" must be an absolute path`},
	"reserved variable":    {service("env: {UNDERSTUDY_TOKEN: 1}"), "5:11: services.s.env.UNDERSTUDY_TOKEN: is set by the supervisor itself"},
	"variable's name":      {service("env: {\"A=B\": 1}"), `5:11: services.s.env."A=B": not a name for a variable`},
	"negative":             {service("grace_delay: -1s"), "5:18: services.s.grace_delay: must not be negative, as -1s is"},
	"service: a path":      {head + "services:\n  ../s: {command: x}\n", `4:3: services."../s": "../s": a name must not start with a dot`},
	"service: a slash":     {head + "services:\n  a/b: {command: x}\n", `4:3: services."a/b": "a/b" is not a name: letters, digits`},
	"service: no name":     {head + "services:\n  \"\": {command: x}\n", `4:3: services."": a name must not be empty`},
	"service: too long":    {head + "services:\n  " + strings.Repeat("x", 129) + ": {command: x}\n", "4:3: services." + strings.Repeat("x", 129) + ": a name of 129 characters is too long"},
	"node: a space":        {"node: my host\nzookeeper: {servers: [a]}\nservices: {s: {command: x}}\n", `1:7: node: "my host" is not a name`},
	"node: empty":          {"node: \"\"\nzookeeper: {servers: [a]}\nservices: {s: {command: x}}\n", "1:7: node: a name must not be empty"},
	"node: a newline":      {"node: \"a\\nb\"\nzookeeper: {servers: [a]}\nservices: {s: {command: x}}\n", `1:7: node: "a\nb" is not a name`},
	"no servers":           {"node: n\nzookeeper: {servers: []}\nservices: {s: {command: x}}\n", "2:22: zookeeper.servers: missing: list the ensemble"},
	"server: port":         {"node: n\nzookeeper: {servers: [\"a:99999\"]}\nservices: {s: {command: x}}\n", `2:23: zookeeper.servers[0]: "a:99999": the port must be a number`},
	"server: path":         {"node: n\nzookeeper: {servers: [a, \"b:1/c\"]}\nservices: {s: {command: x}}\n", `2:26: zookeeper.servers[1]: "b:1/c": a path does not belong to a server`},
	"server: IPv6":         {"node: n\nzookeeper: {servers: [\"::1\"]}\nservices: {s: {command: x}}\n", `2:23: zookeeper.servers[0]: "::1": an IPv6 address goes in brackets`},
	"server: several":      {"node: n\nzookeeper: {servers: [\"a,b\"]}\nservices: {s: {command: x}}\n", `2:23: zookeeper.servers[0]: "a,b": write each server as an item of its own`},
	"server: twice":        {"node: n\nzookeeper: {servers: [a, \"a:2181\"]}\nservices: {s: {command: x}}\n", "2:26: zookeeper.servers[1]: a:2181 is the same server as item 0"},
	"root: relative":       {"node: n\nzookeeper: {servers: [a], root: u}\nservices: {s: {command: x}}\n", `2:33: zookeeper.root: "u" must start with /`},
	"root: slash":          {"node: n\nzookeeper: {servers: [a], root: /}\nservices: {s: {command: x}}\n", "2:33: zookeeper.root: must lie below /"},
	"root: trailing":       {"node: n\nzookeeper: {servers: [a], root: /u/}\nservices: {s: {command: x}}\n", `2:33: zookeeper.root: "/u/" must not end with /`},
	"root: dots":           {"node: n\nzookeeper: {servers: [a], root: /u/../v}\nservices: {s: {command: x}}\n", `2:33: zookeeper.root: "/u/../v" must not have empty parts, . or ..`},
	"root: ZooKeeper's":    {"node: n\nzookeeper: {servers: [a], root: /zookeeper/u}\nservices: {s: {command: x}}\n", "2:33: zookeeper.root: /zookeeper belongs to ZooKeeper itself"},
	"auth: nothing":        {"node: n\nzookeeper:\n  servers: [a]\n  auth:\nservices: {s: {command: x}}\n", "4:3: zookeeper.auth.file: missing: name the file\n4:3: zookeeper.auth.scheme: missing: write digest"},
	"auth: scheme":         {"node: n\nzookeeper:\n  servers: [a]\n  auth: {scheme: sasl, file: /f}\nservices: {s: {command: x}}\n", `4:18: zookeeper.auth.scheme: "sasl" must be digest`},
	"auth: relative":       {"node: n\nzookeeper:\n  servers: [a]\n  auth: {scheme: digest, file: f}\nservices: {s: {command: x}}\n", `4:32: zookeeper.auth.file: "f" must be an absolute path`},
	"no method":            {service("fencing: {methods: [{}]}"), "5:25: services.s.fencing.methods[0]: names no method"},
	"exec: nothing":        {service("fencing: {methods: [exec: ]}"), "5:25: services.s.fencing.methods[0].exec.command: missing: say which program fences"},
	"exec: timeout":        {service("fencing: {methods: [exec: {command: x, timeout: 0s}]}"), "5:53: services.s.fencing.methods[0].exec.timeout: must be positive, not 0s"},

	// Values that do not go together.
	"session too short": {
		"node: n\nzookeeper: {servers: [a], session_timeout: 600ms}\nservices: {s: {command: x}}\n",
		"2:44: zookeeper.session_timeout: 600ms is too short: the lease lasts T - (2*T/12 + T/4 + T/30) = " +
			"600ms - (100ms + 150ms + 20ms) = 330ms, and less than 550ms leaves no room",
	},
	"session of nothing":   {"node: n\nzookeeper: {servers: [a], session_timeout: 0s}\nservices: {s: {command: x}}\n", "2:44: zookeeper.session_timeout: must be positive, not 0s"},
	"session too long":     {"node: n\nzookeeper: {servers: [a], session_timeout: 9999h}\nservices: {s: {command: x}}\n", "2:44: zookeeper.session_timeout: 9999h0m0s is more than ZooKeeper can count"},
	"max_delay":            {service("restart: {delay: 10s, max_delay: 5s}"), "5:38: services.s.restart.max_delay: max_delay 5s is shorter than delay 10s"},
	"max_delay by default": {service("restart: {delay: 40s, within: 1h}"), "5:22: services.s.restart.delay: max_delay 30s is shorter than delay 40s"},
	"never gives up": {
		service("restart: {delay: 30s}"),
		"5:22: services.s.restart.delay: 5 failures with delays of at least 30s between them take 4*30s or more, so within 2m0s",
	},
	"within nothing": {service("restart: {within: 0s}"), "5:23: services.s.restart.within: 5 failures with delays"},
	"give_up_after":  {service("restart: {give_up_after: -1}"), "5:30: services.s.restart.give_up_after: -1 is not a number from 1 to 10000, or 0 for never"},
	"fault of the defaults is told once": {
		head + "defaults: {grace_delay: -1s}\nservices: {a: {command: x}, b: {command: x}}\n",
		"3:25: defaults.grace_delay: must not be negative, as -1s is",
	},
	"default against a service's own": {
		head + "defaults: {restart: {max_delay: 2s}}\nservices: {a: {command: x}, b: {command: x, restart: {delay: 3s}}}\n",
		"4:62: services.b.restart.delay: max_delay 2s is shorter than delay 3s",
	},
	"aliased fault is told once": {
		head + "services:\n  a: {command: x, grace_delay: &d 5}\n  b: {command: x, grace_delay: *d}\n",
		`4:32: services.a.grace_delay: "5" has no unit: write 5s`,
	},

	"everything at once": {
		`node: a/b
zookeper: {}
zookeeper:
  servers: ["x:0"]
  root: u
services:
  .s:
    command: x
    stop_signal: NOPE
  t:
    election: none
    health: {}
`,
		`1:7: node: "a/b" is not a name
2:1: zookeper: unknown key (did you mean "zookeeper"?)
4:13: zookeeper.servers[0]: "x:0": the port must be
5:9: zookeeper.root: "u" must start with /
7:3: services.".s": ".s": a name must not start with a dot
9:18: services.".s".stop_signal: "NOPE" is not a signal
10:3: services.t.command: missing
11:15: services.t.election: "none" must be race or queue
12:5: services.t.health: not supported by this version yet`,
	},
}

func TestBrokenFileNamesEveryFaultAndItsPlace(t *testing.T) {
	for name, test := range broken {
		t.Run(name, func(t *testing.T) {
			_, err := Load("u.yaml", []byte(test.src))
			if err == nil {
				t.Fatalf("was taken:\n%s", test.src)
			}
			var got []string
			for _, f := range err.(Faults) { //nolint:errorlint // the unwrapped type is the promise
				got = append(got, f.String())
			}
			want := strings.Split(test.want, "\n")
			for i := range max(len(got), len(want)) {
				switch {
				case i >= len(got):
					t.Errorf("not told: %s", want[i])
				case i >= len(want):
					t.Errorf("told as well: %s", got[i])
				case !strings.HasPrefix(got[i], "u.yaml:"+want[i]):
					t.Errorf("got  %s\nwant u.yaml:%s", got[i], want[i])
				}
			}
			if t.Failed() {
				t.Logf("the file:\n%s", test.src)
			}
		})
	}
}

func TestManyFaultsEnd(t *testing.T) {
	_, err := Load("u.yaml", []byte(head+"services:\n"+strings.Repeat("  s: {}\n", 5000)))
	var faults Faults
	if !errors.As(err, &faults) || len(faults) < 1000 || len(faults) > 6000 {
		t.Errorf("%d faults", len(faults))
	}
}

func TestFlagsAreValidatedByKey(t *testing.T) {
	cfg := Default()
	s := DefaultService()
	s.Restart.Policy = "sometimes"
	cfg.Services["a b"] = s
	err := cfg.Validate()
	want := `node: a name must not be empty
services."a b": "a b" is not a name: letters, digits and . _ - @ : are allowed
services."a b".command: missing: say which program to run
services."a b".restart.policy: "sometimes" must be on-failure, always or never
zookeeper.servers: missing: list the ensemble, as in ["zk1:2181", "zk2:2181", "zk3:2181"]`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	s = DefaultService()
	s.Command = Command{"x"}
	cfg = Default()
	cfg.Node, cfg.ZooKeeper.Servers, cfg.Services = "n", []Server{"a:1"}, map[string]Service{"s": s}
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
}
