package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"understudy/supervisor/testbed/chaos/history"
	"understudy/supervisor/testbed/kit"
)

// The timeouts of everything.
const (
	session  = 4 * time.Second
	tickTime = 500 * time.Millisecond
	grace    = time.Second
	rejoin   = 5 * time.Second // after giving up, and after a fencing that was refused
	beat     = 3 * time.Millisecond
)

// bounds are generous to a busy machine. A leader has to be elected, an old session of the node itself has to end before
// it opens the next, the lock's former session too, and then there is the wait for its lease, or the rest after a refused fencing.
var bounds = history.Bounds{
	Progress: 2*(session+tickTime) + max(grace, session*7/12+session/20) + rejoin + 20*time.Second,
	Orphan:   3 * time.Second,
	Tick:     beat,
}

// service is one kind of program, and how it is configured.
type service struct {
	name  string
	lines string   // of its config
	words []string // the program's, see testbed/child
}

const fenced = "fenced"

var services = []service{
	{name: "plain", lines: "election: race\n    ready: {notify: true, timeout: 1m}", words: []string{"notify=1"}},
	{name: "queued", lines: "election: queue\n    on_zookeeper_loss: failsafe", words: []string{"children=1"}},
	{name: fenced, lines: "election: race"},
	{name: "forking", lines: "election: queue", words: []string{"daemons=1", "term=fork"}},
	{name: "stubborn", lines: "election: race\n    stop_timeout: 1500ms", words: []string{"term=ignore"}},
}

func serviceNames() (all []string) {
	for _, s := range services {
		all = append(all, s.name)
	}
	return all
}

// configs is what the config files say: those of the nodes, and that of the operators.
type configs struct {
	*world
	self  string // this program
	child string // the program of all services
	store string // its address
}

// build makes what the files name.
func (c *configs) build() {
	var err error
	c.self, err = os.Executable()
	c.must(err)
	c.child = kit.ChildBinary(c)
	at := c.stage.Lab.Host(c.Program, "store")
	c.store = net.JoinHostPort(at.Addr, "7000")
	at.Run(c, c.self, modeStore, c.store, c.book.journal)
	c.must(os.WriteFile(c.tokenFile(), []byte(newSecret()+"\n"), 0o600))
}

// cluster is the part of a file that says where ZooKeeper is. It is all that operators need.
func (c *configs) cluster(name string, k keyring) string {
	return fmt.Sprintf("node: %s\nzookeeper:\n  servers: [%s]\n  root: %s\n  session_timeout: %v\n  auth: {scheme: digest, file: %q}\n",
		name, strings.Join(c.stage.Servers, ", "), root, session, k.file(zkFile))
}

// config is the file of one node's supervisor.
func (c *configs) of(n *node) string {
	var b strings.Builder
	b.WriteString(c.cluster(n.name, n.keys))
	fmt.Fprintf(&b, "log: {format: json}\nhttp: {listen: \":%s\", token_file: %q}\nfencing: {agent: %s}\n", httpPort, c.tokenFile(), c.secrets.means.config(n.keys))
	fmt.Fprintf(&b, "defaults:\n  grace_delay: %v\n  stop_timeout: 3s\n  moves: {max: 0}\n", grace)
	fmt.Fprintf(&b, "  restart: {delay: 100ms, max_delay: 400ms, give_up_after: 4, within: 15s, rejoin_after: %v}\nservices:\n", rejoin)
	for _, s := range services {
		dir := c.book.folder(s.name)
		words := append([]string{
			c.child, "dir=" + dir, "life=" + c.stage.Lab.Lifeline(), "every=" + beat.String(),
			"mutex=" + filepath.Join(dir, "mutex"), "store=" + c.store,
		}, s.words...)
		fmt.Fprintf(&b, "  %s:\n    command: [%s]\n    %s\n    env: {EDITION: \"%d\"}\n", s.name, strings.Join(words, ", "), s.lines, n.edits[s.name])
		b.WriteString(indent(preferred(s.name, n.name)))
		if s.name == fenced {
			fmt.Fprintf(&b, "    fencing: {on_failure: refuse, methods: [{exec: {command: [%s, %s, %s], timeout: 5s}}]}\n",
				c.self, modeFence, c.power.addr())
		}
	}
	return b.String()
}

// mended puts the config back that a supervisor needs in order to start.
func (c *configs) mended(n *node) {
	if n.broken {
		n.broken = false
		c.must(c.rewrite(n))
	}
}

// rewrite replaces a node's config as editors do.
func (c *configs) rewrite(n *node) error {
	if n.broken {
		return nil // mended writes it
	}
	text := c.of(n)
	path := filepath.Join(c.dir, n.name+".yaml")
	if err := os.WriteFile(path+"~", []byte(text), 0o600); err != nil {
		return err
	}
	n.file = path
	return os.Rename(path+"~", path)
}

// tokenFile holds what nobody guesses.
func (c *configs) tokenFile() string { return filepath.Join(c.dir, "http.token") }

// preferred are lines that make a node the preferred one for a service.
func preferred(service, node string) string {
	switch {
	case service == "plain" && node == "b":
		return "priority: 10\n    failback: true"
	case service == "plain":
		return "failback: true"
	case service == "queued" && node == "c":
		return "priority: 5"
	}
	return ""
}

// indent puts lines below a service, and nothing where there are none.
func indent(lines string) string {
	if strings.TrimSpace(lines) == "" {
		return ""
	}
	return "    " + lines + "\n"
}
