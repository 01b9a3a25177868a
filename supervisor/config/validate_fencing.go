package config

import (
	"maps"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// agent checks how this node can be asked.
func (v *validator) agent(p path, a Agent) {
	if a.Listen == "" && !v.given(p.key("listen")) {
		v.fault(p.key("listen"), "missing: write host:port, as in :8438")
	}
	v.tcp(p.key("listen"), a.Listen)
	v.tcp(p.key("advertise"), a.Advertise)
	if host, _, err := net.SplitHostPort(a.Advertise); err == nil && (host == "" || isAny(host)) {
		v.fault(p.key("advertise"), "%s is no address that others can reach", quoted(a.Advertise))
	}
	v.secretFile(p.key("secret_file"), a.SecretFile, "the secret that all nodes share", a.TLS == nil)
	if a.TLS == nil {
		return
	}
	at := p.key("tls")
	for _, file := range []struct{ key, name, what string }{
		{"ca_file", a.TLS.CAFile, "the authorities that sign for nodes"}, {"cert_file", a.TLS.CertFile, "this node's certificate"},
		{"key_file", a.TLS.KeyFile, "its key"},
	} {
		if file.name == "" {
			v.fault(at.key(file.key), "missing: name the file that holds %s", file.what)
			continue
		}
		v.absolute(at.key(file.key), file.name)
	}
}

func isAny(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsUnspecified()
}

// secretFile checks the path of a file that holds a secret. The path may be the secret itself, which no log shall show.
func (v *validator) secretFile(p path, file, what string, needed bool) {
	switch {
	case file == "" && (needed || v.given(p)):
		v.fault(p, "missing: name the file that holds %s", what)
	case file == "":
	case !strings.HasPrefix(file, "/"):
		v.fault(p, "must be the absolute path of a file that holds %s", what)
	default:
		v.absolute(p, file)
	}
}

func (v *validator) fencing(p path, f Fencing) {
	v.choice(p.key("on_failure"), string(f.OnFailure), f.OnFailure)
	for i, method := range f.Methods {
		at := p.key("methods").item(i)
		if len(method.Any) == 0 && v.given(at.key("any")) {
			v.fault(at.key("any"), "is empty: list methods that are tried at the same time")
			continue
		}
		for j, one := range method.Any {
			v.fenceMethod(at.key("any").item(j), one)
		}
		if len(method.Any) == 0 {
			v.fenceMethod(at, method.FenceOne)
		}
	}
}

func (v *validator) fenceMethod(p path, m FenceOne) {
	var timeout time.Duration
	var key string
	switch {
	case m.Agent != nil:
		key, timeout = "agent", m.Agent.Timeout
		if !v.hasAgent {
			v.fault(p.key(key), "takes an agent here and on every other node: write fencing: {agent: {listen: ..., secret_file: ...}} at the top of the file")
		}
	case m.Exec != nil:
		key, timeout = "exec", m.Exec.Timeout
		v.fenceCommand(p.key(key).key("command"), m.Exec.Command)
		v.plugs(p.key(key), m.Exec.Plugs)
	case m.SSH != nil:
		key, timeout = "ssh", m.SSH.Timeout
		v.fenceSSH(p.key(key), *m.SSH)
	case m.HTTP != nil:
		key, timeout = "http", m.HTTP.Timeout
		v.fenceHTTP(p.key(key), *m.HTTP)
	case m.FenceAgent != nil:
		key, timeout = "fence_agent", m.FenceAgent.Timeout
		v.fenceProgram(p.key(key), *m.FenceAgent)
	default:
		v.fault(p, "names no method: write agent: {}, exec:, ssh:, http:, fence_agent: or any: [...]")
		return
	}
	v.positive(p.key(key).key("timeout"), timeout)
}

func (v *validator) fenceCommand(p path, words Command) {
	if len(words) == 0 {
		v.fault(p, "missing: say which program fences")
	}
	v.command(p, words)
}

func (v *validator) fenceSSH(p path, s FenceSSH) {
	if s.User == "" {
		v.fault(p.key("user"), "missing: say whom to log in as")
	}
	v.secretFile(p.key("key_file"), s.KeyFile, "the private key", true)
	if s.KnownHosts == "" {
		v.fault(p.key("known_hosts"), "missing: name the file of known host keys; another host could say anything")
	} else {
		v.absolute(p.key("known_hosts"), s.KnownHosts)
	}
	v.tcp(p.key("address"), filled(s.Address))
	v.plugs(p, s.Plugs)
	if len(s.Plugs) > 0 {
		v.fenceBesides(p.key("address"), s.Address, false)
	}
	if strings.ContainsAny(s.Command, "\n\x00") {
		v.fault(p.key("command"), "must be one line")
	}
}

func (v *validator) fenceHTTP(p path, h FenceHTTP) {
	if h.URL == "" && !v.given(p.key("url")) {
		v.fault(p.key("url"), "missing: write a URL")
	}
	v.http(p.key("url"), filled(h.URL))
	v.plugs(p, h.Plugs)
	v.fenceWhom(p, h)
	methods := []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	if h.Method != "" && !slices.Contains(methods, h.Method) {
		v.fault(p.key("method"), "%s must be %s%s", quoted(h.Method), oneOf(methods), DidYouMean(h.Method, methods))
	}
	for i, status := range h.Status {
		if status < 100 || status > 599 {
			v.fault(p.key("status").item(i), "%d is not an HTTP status", status)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(h.Headers)) {
		if name == "" || strings.ContainsAny(name, " :\t\r\n") || strings.ContainsAny(h.Headers[name], "\r\n\x00") {
			v.fault(p.key("headers").key(name), "is not a header line")
		}
	}
	v.secretFile(p.key("bearer_file"), h.BearerFile, "the bearer token", false)
	if h.CAFile != "" {
		v.absolute(p.key("ca_file"), h.CAFile)
	}
}

func (v *validator) fenceProgram(p path, f FenceProgram) {
	v.fenceCommand(p.key("command"), f.Command)
	v.plugs(p, f.Plugs)
	if len(f.Plugs) == 0 {
		v.danger([]path{p.key("plugs"), p}, "without plugs, whichever node a breadcrumb names is switched off, and whoever can write ZooKeeper writes breadcrumbs; list the nodes, as in plugs: {NODE: OUTLET}")
	}
	for _, name := range slices.Sorted(maps.Keys(f.Options)) {
		at := p.key("options").key(name)
		switch {
		case name == "action":
			v.fault(at, "is not for the file to say: the node is switched off")
		case strings.ContainsAny(name, "=\r\n") || strings.ContainsAny(f.Options[name], "\r\n"):
			v.fault(at, "must be one line")
		case f.Secrets[name] != "":
			v.fault(at, "is among the secrets too")
		case len(f.Plugs) > 0:
			v.fenceBesides(at, f.Options[name], true)
		case fromCrumb.MatchString(f.Options[name]) || ofChild.MatchString(f.Options[name]):
			v.danger([]path{at}, "the method will refuse: a breadcrumb would choose whom the agent asks; list the nodes, as in plugs: {NODE: WORD}, and write {plug}")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Secrets)) {
		v.secretFile(p.key("secrets").key(name), f.Secrets[name], "it", true)
	}
}

// plugs checks the list of the nodes that a method may fence.
func (v *validator) plugs(p path, plugs map[string]string) {
	at := p.key("plugs")
	for _, node := range slices.Sorted(maps.Keys(plugs)) {
		if message := nameFault(node); message != "" {
			v.keyFault(at.key(node), message)
		}
		if word := plugs[node]; word == "" || !printable(word) {
			v.fault(at.key(node), "missing: write what %s is called there, if only its name", quoted(node))
		}
	}
}

// fromCrumb finds what a breadcrumb says of whom to fence.
var fromCrumb = regexp.MustCompile(`\{(node|plug|host|machine|address)\}`)

// ofChild finds what a breadcrumb says of the child only: it may be told, and choose nobody.
var ofChild = regexp.MustCompile(`\{(boot|session)\}`)

// besidesPlugs finds what no list of nodes vouches for.
var besidesPlugs = regexp.MustCompile(`\{(machine|address)\}`)

// fenceBesides looks for what a method with plugs refuses to fill in: at a takeover it would be too late to learn that.
func (v *validator) fenceBesides(at path, text string, chooses bool) {
	switch {
	case besidesPlugs.MatchString(text) || chooses && ofChild.MatchString(text):
		v.danger([]path{at}, "the method will refuse: plugs say nothing of what a breadcrumb would fill in there; write {plug} or {node}")
	case strings.Contains(text, "{host}"):
		v.danger([]path{at}, "the method will refuse a node whose host is called neither as the node nor as its plug; write {plug} or {node} in place of {host}")
	}
}

// fenceWhom looks at what a breadcrumb, which whoever can write ZooKeeper writes, would choose.
func (v *validator) fenceWhom(p path, h FenceHTTP) {
	at := p.key("url")
	_, rest, _ := strings.Cut(h.URL, "://")
	authority, _, _ := strings.Cut(strings.NewReplacer("?", "/", "#", "/").Replace(rest), "/")
	if i := strings.LastIndexByte(authority, ':'); !strings.Contains(authority, "@") &&
		(strings.Contains(authority, "{address}") || i >= 0 && strings.ContainsAny(authority[i:], "{}")) {
		v.fault(at, "nothing can be filled in for a port: write {plug} for the host, and the port behind it")
		return
	}
	texts := []string{h.URL, h.Body}
	for _, value := range h.Headers {
		texts = append(texts, value)
	}
	switch {
	case len(h.Plugs) > 0:
		v.fenceBesides(at, authority, true)
		v.fenceBesides(at, strings.TrimPrefix(rest, authority), false)
		v.fenceBesides(p.key("body"), h.Body, false)
		for _, name := range slices.Sorted(maps.Keys(h.Headers)) {
			v.fenceBesides(p.key("headers").key(name), h.Headers[name], http.CanonicalHeaderKey(name) == "Host")
		}
	case fromCrumb.MatchString(authority) || ofChild.MatchString(authority):
		v.danger([]path{at}, "the method will refuse: a breadcrumb would choose which server is asked; list the nodes, as in plugs: {NODE: HOST}, and write {plug}")
	case slices.ContainsFunc(texts, fromCrumb.MatchString):
		v.danger([]path{at}, "fences whichever node a breadcrumb names, and whoever can write ZooKeeper writes breadcrumbs; list the nodes, as in plugs: {NODE: WORD}, and write {plug}")
	}
}

// filled is a text with something in the places that are filled in for a target.
func filled(text string) string {
	return strings.NewReplacer("[{plug}]", "[::1]", "[{node}]", "[::1]", "[{host}]", "[::1]", "{service}", "s", "{node}", "n", "{plug}", "p", "{host}", "h", "{machine}", "m", "{boot}", "b",
		"{token}", "1", "{session}", "0x1", "{address}", "h:1").Replace(text)
}
