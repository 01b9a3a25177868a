package config

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Validate reports, as Faults that name keys but no places, what keeps a configuration from being run. It is for those
// who fill a Config from flags; what Read returns has passed it.
func (c *Config) Validate() error {
	doc := document{Node: c.Node, ZooKeeper: c.ZooKeeper, Log: c.Log, HTTP: c.HTTP, Fencing: c.Fencing, Watchdog: c.Watchdog, Services: map[string]written{}}
	for name, s := range c.Services {
		doc.Services[name] = s.write()
	}
	v := validator{given: func(path) bool { return false }}
	v.document(doc)
	var faults Faults
	for _, f := range v.found {
		faults = append(faults, Fault{Key: f.keys[0].String(), Message: f.message})
	}
	return faults.orNil()
}

// validator collects what is wrong, and what is only doubtful.
type validator struct {
	found, doubts []found
	given         func(path) bool // whether a file says it, rather than a default
	hasAgent      bool            // this node has a fencing agent
	session       time.Duration
}

func (v *validator) fault(p path, format string, args ...any) {
	v.found = append(v.found, found{keys: []path{p}, message: fmt.Sprintf(format, args...)})
}

// keyFault says that it is the key that is wrong, not its value.
func (v *validator) keyFault(p path, message string) {
	v.found = append(v.found, found{keys: []path{p}, onKey: true, message: message})
}

// ratio reports that two or more keys do not go together.
func (v *validator) ratio(keys []path, format string, args ...any) {
	v.found = append(v.found, found{keys: keys, message: fmt.Sprintf(format, args...)})
}

func (v *validator) doubt(keys []path, format string, args ...any) {
	v.doubts = append(v.doubts, found{keys: keys, message: fmt.Sprintf(format, args...)})
}

// danger is a doubt about what others may do, which log and status tell too.
func (v *validator) danger(keys []path, format string, args ...any) {
	v.doubts = append(v.doubts, found{keys: keys, danger: true, message: fmt.Sprintf(format, args...)})
}

func (v *validator) document(doc document) {
	if message := nameFault(doc.Node); message != "" {
		v.fault(path{"node"}, "%s", message)
	}
	v.zookeeper(path{"zookeeper"}, doc.ZooKeeper)
	v.choice(path{"log", "level"}, string(doc.Log.Level), doc.Log.Level)
	v.choice(path{"log", "format"}, string(doc.Log.Format), doc.Log.Format)
	v.serving(path{"http"}, doc.HTTP)
	if v.hasAgent = doc.Fencing.Agent != nil; v.hasAgent {
		v.agent(path{"fencing", "agent"}, *doc.Fencing.Agent)
	}
	v.session = counted(doc.ZooKeeper)
	v.watchdog(path{"watchdog"}, doc.Watchdog, v.session)
	// Nothing to run yet is fine where that is said, and where files that are still to come may bring it.
	if doc.Services == nil && !v.given(path{"services"}) && !slices.ContainsFunc(doc.Include, isGlob) {
		v.fault(path{"services"}, "missing: there is nothing to run (say `services: {}` where that is meant)")
	}
	logs := map[string]string{}
	held := map[Contain]string{} // who wants its processes held so
	for _, name := range slices.Sorted(maps.Keys(doc.Services)) {
		p := path{"services", name}
		if message := nameFault(name); message != "" {
			v.keyFault(p, message)
		}
		service := doc.Services[name]
		if len(service.Command) == 0 && len(service.Processes) == 0 {
			v.missing(p)
		}
		v.settings(p, service)
		v.logs(p, service, logs)
		v.held(p.key("contain"), service.Contain, held)
	}
}

// held refuses what one supervisor cannot do: it holds all its services in one way.
func (v *validator) held(p path, c Contain, held map[Contain]string) {
	for other, kind := range map[Contain]Contain{ContainPidns: ContainCgroup, ContainCgroup: ContainPidns} {
		if c == kind && held[other] != "" {
			v.fault(p, "%s is %s, and one supervisor holds all services alike: run another one for this service", held[other], other)
		}
	}
	held[c] = p.String()
}

// missing says that there is nothing to run, where that is to be seen.
func (v *validator) missing(p path) {
	key := p.key("command")
	if v.given(p.key("processes")) {
		key = p.key("processes")
	}
	v.fault(key, "missing: say which program to run")
}

// logs refuses two writers of one log file: each would put it aside under the other's feet.
func (v *validator) logs(p path, w written, logs map[string]string) {
	each := func(p path, file string) {
		at := p.key("log").key("file")
		if file == "" {
			return
		}
		if other, taken := logs[file]; taken {
			v.fault(at, "%s is the log of %s already: each process needs one of its own", quoted(file), other)
			return
		}
		logs[file] = p.String()
	}
	for i, process := range w.Processes {
		each(p.key("processes").item(i), process.Log.File)
	}
	if len(w.Processes) == 0 {
		each(p, w.Log.File)
	}
}

// hostname is the default for a node's name.
func (v *validator) hostname() string {
	name, err := os.Hostname()
	if err != nil {
		v.fault(path{"node"}, "missing, and the host has no name to take instead: %v", err)
		return "unknown"
	}
	if message := nameFault(name); message != "" {
		v.fault(path{"node"}, "missing, and the host's name does not serve: %s", message)
		return "unknown"
	}
	return name
}

var safeName = regexp.MustCompile(`^[A-Za-z0-9_@:][A-Za-z0-9._@:-]*$`)

// nameFault says why a name cannot be that of a znode, a cgroup and a label at once; "" when it can.
func nameFault(name string) string {
	const longest = 128
	switch {
	case name == "":
		return "a name must not be empty"
	case len(name) > longest:
		return fmt.Sprintf("a name of %d characters is too long: %d are allowed", len(name), longest)
	case strings.HasPrefix(name, "."):
		return quoted(name) + ": a name must not start with a dot"
	case strings.HasPrefix(name, "-"): // every command would take it for a flag
		return quoted(name) + ": a name must not start with -"
	case !safeName.MatchString(name):
		return quoted(name) + " is not a name: letters, digits and . _ - @ : are allowed"
	}
	return ""
}

func (v *validator) zookeeper(p path, zk ZooKeeper) {
	if len(zk.Servers) == 0 {
		v.fault(p.key("servers"), `missing: list the ensemble, as in ["zk1:2181", "zk2:2181", "zk3:2181"]`)
	}
	seen := map[Server]int{}
	for i, server := range zk.Servers {
		at := p.key("servers").item(i)
		plain, err := parseServer(string(server))
		if err != nil {
			v.fault(at, "%v", err)
			continue
		}
		if j, twice := seen[plain]; twice {
			v.fault(at, "%s is the same server as item %d", plain, j)
			continue
		}
		seen[plain] = i
	}
	if message := rootFault(zk.Root); message != "" {
		v.fault(p.key("root"), "%s", message)
	}
	v.sessionTimeout(p.key("session_timeout"), zk.SessionTimeout)
	if p := p.key("min_session_timeout"); v.given(p) {
		v.minSessionTimeout(p, zk)
	}
	if zk.Auth != nil {
		v.auth(p.key("auth"), *zk.Auth)
	}
	if zk.TLS != nil {
		v.tls(p.key("tls"), *zk.TLS)
	}
}

func (v *validator) tls(p path, t TLS) {
	for _, file := range []struct{ key, name string }{{"ca_file", t.CAFile}, {"cert_file", t.CertFile}, {"key_file", t.KeyFile}} {
		if file.name != "" {
			v.absolute(p.key(file.key), file.name)
		}
	}
	switch {
	case t.CertFile != "" && t.KeyFile == "":
		v.fault(p.key("key_file"), "missing: it goes with cert_file")
	case t.KeyFile != "" && t.CertFile == "":
		v.fault(p.key("cert_file"), "missing: it goes with key_file")
	}
}

func (v *validator) auth(p path, auth Auth) {
	switch {
	case auth.Scheme == "":
		v.fault(p.key("scheme"), "missing: write digest")
	case auth.Scheme != "digest":
		v.fault(p.key("scheme"), "%s", mustBeOneOf(auth.Scheme, []string{"digest"}))
	}
	if auth.File == "" {
		v.fault(p.key("file"), "missing: name the file that holds user:password")
		return
	}
	if !strings.HasPrefix(auth.File, "/") { // it may be the secret itself, which no log shall show
		v.fault(p.key("file"), "must be the absolute path of a file that holds user:password")
		return
	}
	v.absolute(p.key("file"), auth.File)
}

// rootFault says why a path cannot hold our znodes; "" when it can.
func rootFault(root string) string {
	switch {
	case root == "":
		return "must not be empty: write a path such as /understudy"
	case !strings.HasPrefix(root, "/"):
		return quoted(root) + " must start with /"
	case root == "/":
		return "must lie below /, as /understudy does"
	case strings.HasSuffix(root, "/"):
		return quoted(root) + " must not end with /"
	case root == "/zookeeper" || strings.HasPrefix(root, "/zookeeper/"):
		return "/zookeeper belongs to ZooKeeper itself"
	case !printable(root):
		return quoted(root) + " contains a character that no znode may have"
	}
	for part := range strings.SplitSeq(root[1:], "/") {
		if part == "" || part == "." || part == ".." {
			return quoted(root) + " must not have empty parts, . or .."
		}
	}
	return ""
}

// sessionTimeout checks P1's arithmetic: a lease ends early enough before the session can, and is still long enough to
// be extended and to kill a tree in.
func (v *validator) sessionTimeout(p path, timeout time.Duration) {
	const shortest, longest = time.Second, (1<<31 - 1) * time.Millisecond
	switch {
	case timeout <= 0:
		v.fault(p, "must be positive, not %v", timeout)
	case timeout < shortest:
		heartbeats, tick, jitter := 2*timeout/12, timeout/4, timeout/30
		v.fault(p, "%v is too short: the lease lasts T - (2*T/12 + T/4 + T/30) = %v - (%v + %v + %v) = %v, "+
			"and less than %v leaves no room to miss a heartbeat and kill a tree; write %v or more",
			timeout, timeout, heartbeats, tick, jitter, lease(timeout), lease(shortest).Round(time.Millisecond), shortest)
	case timeout > longest:
		v.fault(p, "%v is more than ZooKeeper can count: %v at most", timeout, longest)
	}
}

// counted is the session timeout that all counts with, if the servers grant what is asked for.
func counted(zk ZooKeeper) time.Duration {
	if floor := zk.MinSessionTimeout; floor > 0 && zk.SessionTimeout > 0 {
		return min(zk.SessionTimeout, floor*12/7)
	}
	return zk.SessionTimeout
}

func (v *validator) minSessionTimeout(p path, zk ZooKeeper) {
	const shortest = 600 * time.Millisecond
	switch floor := zk.MinSessionTimeout; {
	case floor <= 0:
		v.fault(p, "must be positive, not %v", floor)
	case floor < shortest:
		v.fault(p, "%v is too short: the lease is that of a session_timeout of 12/7 of it at most, and that has to be a second or more; write %v or more", floor, shortest)
	case floor > zk.SessionTimeout:
		v.fault(p, "%v is more than the session_timeout of %v: no session would be good enough", floor, zk.SessionTimeout)
	}
}

// lease is how long a child may run after the sending of the last heartbeat that was acknowledged.
func lease(timeout time.Duration) time.Duration {
	return timeout - (2*timeout/12 + timeout/4 + timeout/30)
}

func (v *validator) choice(p path, word string, kind choice) {
	if message := mustBeOneOf(word, kind.choices()); message != "" {
		v.fault(p, "%s", message)
	}
}

func mustBeOneOf(word string, words []string) string {
	if slices.Contains(words, word) {
		return ""
	}
	return fmt.Sprintf("%s must be %s%s", quoted(word), oneOf(words), DidYouMean(word, words))
}

func (v *validator) absolute(p path, name string) {
	switch {
	case !strings.HasPrefix(name, "/"):
		v.fault(p, "%s must be an absolute path", quoted(name))
	case strings.ContainsRune(name, 0):
		v.fault(p, "a path must not contain a NUL character")
	}
}

// printable reports whether text is of characters that a znode's name may have and a terminal shows.
func printable(text string) bool {
	return utf8.ValidString(text) && strings.IndexFunc(text, func(r rune) bool {
		return !unicode.IsPrint(r) || r > 0xffef
	}) < 0
}

// quoted shows a value that may be anything.
func quoted(text string) string { return strconv.Quote(shorten(text)) }
