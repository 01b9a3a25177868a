package config

import (
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Fencing says how an old active node is made sure to be dead when nothing proves it.
type Fencing struct {
	Methods   []FenceMethod `yaml:"methods,omitempty" doc:"What is tried, in order. The first that succeeds is enough."`
	OnFailure OnFailure     `yaml:"on_failure" doc:"What to do if every method fails. With refuse, no node starts the program until a method succeeds or an operator confirms. With grace, the new node starts it after grace_delay."`
}

// FenceMethod is one method; exactly one field is set.
type FenceMethod struct {
	Agent      *FenceAsk     `yaml:"agent,omitempty" oneof:"method" doc:"Ask the previous node's own supervisor. Requires fencing.agent on every node."`
	Exec       *FenceExec    `yaml:"exec,omitempty" oneof:"method" doc:"A command that succeeds only once the previous node is dead."`
	SSH        *FenceSSH     `yaml:"ssh,omitempty" oneof:"method" doc:"Log in on the previous node's host, where 'understudy fence kill-local' kills the program and proves it."`
	HTTP       *FenceHTTP    `yaml:"http,omitempty" oneof:"method" doc:"A request whose answer has a certain status only once the previous node is dead."`
	FenceAgent *FenceProgram `yaml:"fence_agent,omitempty" oneof:"method" doc:"One of ClusterLabs' fence agents, which switches the previous node off, and checks that."`
}

// FenceAsk asks the agent that the breadcrumb names.
type FenceAsk struct {
	Timeout time.Duration `yaml:"timeout" doc:"How long it may take."`
}

// FenceExec runs a command that exits 0 once the target is known to be dead.
type FenceExec struct {
	Command Command           `yaml:"command,flow" doc:"The program and its arguments. Its environment has the node to fence."`
	Plugs   map[string]string `yaml:"plugs,omitempty" doc:"The only nodes that it may fence, each with a value, which the command gets as UNDERSTUDY_TARGET_PLUG. Default: any node in the record."`
	Timeout time.Duration     `yaml:"timeout" doc:"How long it may take."`
}

// FenceSSH runs `understudy fence kill-local` over ssh.
type FenceSSH struct {
	User       string            `yaml:"user" doc:"The user to log in as."`
	KeyFile    string            `yaml:"key_file" doc:"The private key, without a passphrase."`
	KnownHosts string            `yaml:"known_hosts" doc:"The file of known host keys, as for ssh. Other hosts are refused."`
	Address    string            `yaml:"address,omitempty" doc:"Where to log in, as host:port. {host}, {node} and the like are filled in. Default: {host}:22, with plugs {plug}:22."`
	Command    string            `yaml:"command,omitempty" doc:"What to run there. The facts about the program are appended. Default: understudy fence kill-local."`
	Plugs      map[string]string `yaml:"plugs,omitempty" doc:"The only nodes that it may fence, each with its host. Default: any node in the record, on a host in known_hosts."`
	Timeout    time.Duration     `yaml:"timeout" doc:"How long it may take."`
}

// FenceHTTP makes one request.
type FenceHTTP struct {
	URL        string            `yaml:"url" doc:"The URL. {node}, {plug}, {service}, {token} and the like are filled in, in headers and body too. In the host they are filled in only for nodes that plugs lists."`
	Method     string            `yaml:"method,omitempty" doc:"The request's method. Default: POST."`
	Headers    map[string]string `yaml:"headers,omitempty" doc:"Header lines, by name."`
	Body       string            `yaml:"body,omitempty" doc:"The request's body."`
	Status     []int             `yaml:"status,flow,omitempty" doc:"Which statuses mean that the previous node is dead. Default: 200 to 299."`
	BearerFile string            `yaml:"bearer_file,omitempty" doc:"The file with a bearer token."`
	CAFile     string            `yaml:"ca_file,omitempty" doc:"The authorities that sign for the server, in PEM. Default: the system's."`
	Plugs      map[string]string `yaml:"plugs,omitempty" doc:"The only nodes that it may fence, each with its value for {plug}. Default: any node in the record, if the URL's host has no part of it."`
	Timeout    time.Duration     `yaml:"timeout" doc:"How long it may take."`
}

// FenceProgram runs a fence agent.
type FenceProgram struct {
	Command Command           `yaml:"command,flow" doc:"The fence agent and its arguments, as in fence_ipmilan."`
	Options map[string]string `yaml:"options,omitempty" doc:"Its options, by their names on its stdin. {node}, {plug} and the like are filled in."`
	Secrets map[string]string `yaml:"secrets,omitempty" doc:"Options whose value is the only line of a file, as in password: /etc/understudy/ipmi.secret."`
	Plugs   map[string]string `yaml:"plugs,omitempty" doc:"The only nodes that it may fence, each with the fence agent's name for its outlet or machine. Default: any node in the record, by its name."`
	Timeout time.Duration     `yaml:"timeout" doc:"How long switching off and checking may take together."`
}

// setDefaults is called before a method that the file names is read.
func (x *FenceExec) setDefaults()    { x.Timeout = 10 * time.Second }
func (a *FenceAsk) setDefaults()     { a.Timeout = 5 * time.Second }
func (s *FenceSSH) setDefaults()     { s.Timeout = 10 * time.Second }
func (h *FenceHTTP) setDefaults()    { h.Timeout = 5 * time.Second }
func (f *FenceProgram) setDefaults() { f.Timeout = 30 * time.Second }

func (f Fencing) check(p place) {
	checkChoice(p.key("on_failure"), f.OnFailure)
	if f.OnFailure == OnFailureRefuse && len(f.Methods) == 0 && p.key("on_failure").given() {
		p.key("on_failure").warn("has no effect without methods: once grace_delay is over, another node starts the program")
	}
	if methods := p.key("methods"); len(f.Methods) == 0 && methods.given() && !p.where.spots[methods.keys[0].id()].hides {
		methods.warn("is empty: once grace_delay is over, another node starts the program, whether or not it is dead here")
	}
	for i, method := range f.Methods {
		method.check(p.key("methods").item(i))
	}
}

func (m FenceMethod) check(p place) {
	var timeout time.Duration
	var key string
	switch {
	case m.Agent != nil:
		key, timeout = "agent", m.Agent.Timeout
		if !p.asks {
			p.key(key).fault("needs an agent here and on every other node: write fencing: " +
				"{agent: {listen: ..., secret_file: ...}} at the top of the file")
		}
	case m.Exec != nil:
		key, timeout = "exec", m.Exec.Timeout
		command := p.key(key).key("command")
		checkFencer(command, m.Exec.Command)
		if idle := m.Exec.Command.idle(); idle != "" {
			command.warn("%s succeeds whatever the previous node's host does, and the program may still run there: "+
				"name a command that switches that host off", quoted(idle))
		}
		if pings.MatchString(strings.Join(m.Exec.Command, " ")) {
			command.warn("a host that does not answer may be cut off, and still run the program: name a command that switches it off")
		}
		if name := m.Exec.Command.program(); slices.Contains([]string{"halt", "poweroff", "reboot", "shutdown"}, name) {
			command.warn("%s acts on this host, which is about to start the program, and not on the previous node's: "+
				"name a command that switches that one off", quoted(name))
		}
		for i, word := range m.Exec.Command {
			checkUnfilled(command.item(i).and(command), word, "its environment has UNDERSTUDY_TARGET_NODE and the like")
		}
		checkPlugs(p.key(key), m.Exec.Plugs)
	case m.SSH != nil:
		key, timeout = "ssh", m.SSH.Timeout
		m.SSH.check(p.key(key))
	case m.HTTP != nil:
		key, timeout = "http", m.HTTP.Timeout
		m.HTTP.check(p.key(key))
	case m.FenceAgent != nil:
		key, timeout = "fence_agent", m.FenceAgent.Timeout
		m.FenceAgent.check(p.key(key))
	default:
		p.fault("names no method: write agent: {}, exec:, ssh:, http: or fence_agent:")
		return
	}
	checkPositive(p.key(key).key("timeout"), timeout)
}

func checkFencer(p place, words Command) {
	if len(words) == 0 {
		p.fault("missing: say which program fences")
	}
	words.check(p)
}

// program is the name of what a command runs, by itself or as the only thing that its shell does.
func (words Command) program() string {
	if len(words) == 3 && words[1] == "-c" && !strings.ContainsAny(words[2], ";&|\n`$(") {
		words = strings.Fields(words[2])
	}
	if len(words) == 0 {
		return ""
	}
	return filepath.Base(words[0])
}

// idle is the program's name where a command succeeds without doing anything.
func (words Command) idle() string {
	if name := words.program(); slices.Contains([]string{"true", ":", "echo", "printf", "sleep"}, name) {
		return name
	}
	if len(words) == 3 && words[1] == "-c" {
		return endsIdle.FindString(words[2])
	}
	return ""
}

// pings finds a fencing that takes silence for death.
var pings = regexp.MustCompile(`(^| )! *(/\S+/)?(ping|fping|arping|nc)\b`)

// endsIdle is the end of a shell's line that succeeds whatever came before it.
var endsIdle = regexp.MustCompile(`(\|\||;)\s*(true|:)\s*$`)

func (s FenceSSH) check(p place) {
	if s.User == "" {
		p.key("user").fault("missing: name the user to log in as")
	}
	checkSecretFile(p.key("key_file"), s.KeyFile, "the private key", true)
	checkFile(p.key("known_hosts"), s.KnownHosts, "the known host keys; another host could say anything")
	checkAddress(p.key("address"), filled(s.Address))
	checkPlugs(p, s.Plugs)
	if len(s.Plugs) > 0 {
		checkFilledIn(p.key("address"), s.Address, false)
	}
	checkPlaceholders(p.key("address"), s.Address)
	if s.Address != "" {
		checkEach(p.key("plugs"), s.Plugs, s.Address)
	}
	checkUnfilled(p.key("command"), s.Command, "the facts about the program are appended")
	if s.Command != "" && !strings.Contains(s.Command, "kill-local") {
		p.key("command").warn("the method fails without the statement that `understudy fence kill-local` prints: have the command run that")
	}
	if strings.ContainsAny(s.Command, "\n\x00") {
		p.key("command").fault("must be one line")
	}
}

func (h FenceHTTP) check(p place) {
	if h.URL == "" && !p.key("url").given() {
		p.key("url").fault("missing: write a URL")
	}
	checkURL(p.key("url"), filled(h.URL))
	checkPlaceholders(p.key("url"), h.URL)
	checkPlaceholders(p.key("body"), h.Body)
	texts := append(slices.Collect(maps.Values(h.Headers)), h.URL, h.Body)
	checkEach(p.key("plugs"), h.Plugs, texts...)
	checkApart(p.key("plugs"), h.Plugs, texts...)
	checkPlugs(p, h.Plugs)
	h.checkWhom(p)
	methods := []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	if message := mustBeOneOf(h.Method, methods); h.Method != "" && message != "" {
		p.key("method").fault("%s", message)
	}
	for i, status := range h.Status {
		if status < 100 || status > 599 {
			p.key("status").item(i).fault("%d is not an HTTP status", status)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(h.Headers)) {
		if name == "" || strings.ContainsAny(name, " :\t\r\n") || strings.ContainsAny(h.Headers[name], "\r\n\x00") {
			p.key("headers").key(name).fault("is not a header line")
		}
		checkPlaceholders(p.key("headers").key(name), h.Headers[name])
	}
	checkSecretFile(p.key("bearer_file"), h.BearerFile, "the bearer token", false)
	if u, err := url.Parse(filled(h.URL)); err == nil && u.Scheme == "http" && !isLoopback(u.Hostname()) {
		h.checkClear(p)
	}
	checkFile(p.key("ca_file"), h.CAFile, "")
}

// checkClear warns of tokens that anybody on the network can read.
func (h FenceHTTP) checkClear(p place) {
	const clear = "the token is sent without TLS, where others can read it: write https:// in url"
	if h.BearerFile != "" {
		p.key("bearer_file").danger(clear)
	}
	for _, name := range slices.Sorted(maps.Keys(h.Headers)) {
		if secretName.MatchString(name) {
			p.key("headers").key(name).danger(clear)
		}
	}
}

func (f FenceProgram) check(p place) {
	checkFencer(p.key("command"), f.Command)
	checkPlugs(p, f.Plugs)
	texts := slices.Collect(maps.Values(f.Options))
	fixed := f.Options["plug"] != "" || ofOneHost.MatchString(f.Command.program()) && f.Options["port_as_ip"] == ""
	switch {
	case len(f.Plugs) > 0:
	case fixed && !slices.ContainsFunc(texts, fromCrumb.MatchString):
		p.key("plugs").and(p).danger("the method always asks the same device, whichever node failed, perhaps this host's: " +
			"list the nodes, as in plugs: {NODE: WORD}, and write {plug}")
	default:
		p.key("plugs").and(p).danger("without plugs, the method switches off any node that the record of the active node gives, " +
			"and any client that can write to ZooKeeper can write that: list the nodes, as in plugs: {NODE: OUTLET}")
	}
	for _, name := range slices.Sorted(maps.Keys(f.Options)) {
		at := p.key("options").key(name)
		checkPlaceholders(at, f.Options[name])
		switch {
		case name == "action":
			at.fault("leave it out: the method always switches the node off")
		case strings.ContainsAny(name, "=\r\n") || strings.ContainsAny(f.Options[name], "\r\n"):
			at.fault("must be one line")
		case f.Secrets[name] != "":
			at.fault("is among the secrets too")
		case len(f.Plugs) > 0:
			checkFilledIn(at, f.Options[name], true)
		case fromCrumb.MatchString(f.Options[name]) || ofChild.MatchString(f.Options[name]):
			at.danger("the method will refuse, because the record of the active node would choose which device the agent asks: " +
				"list the nodes, as in plugs: {NODE: WORD}, and write {plug}")
		}
	}
	checkApart(p.key("plugs"), f.Plugs, texts...)
	if fixed {
		checkEach(p.key("plugs"), f.Plugs, texts...)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Secrets)) {
		checkSecretFile(p.key("secrets").key(name), f.Secrets[name], "it", true)
	}
}
