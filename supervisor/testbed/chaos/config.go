package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"understudy/supervisor/testbed/chaos/history"
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

// cluster is the part of a file that says where ZooKeeper is. It is all that operators need.
func (w *world) cluster(name string, k keyring) string {
	return fmt.Sprintf("node: %s\nzookeeper:\n  servers: [%s]\n  root: %s\n  session_timeout: %v\n  auth: {scheme: digest, file: %q}\n",
		name, strings.Join(w.stage.Servers, ", "), root, session, k.file(zkFile))
}

// config is the file of one node's supervisor.
func (w *world) config(n *node) string {
	var b strings.Builder
	b.WriteString(w.cluster(n.name, n.keys))
	fmt.Fprintf(&b, "log: {format: json}\nhttp: {listen: \":%s\", token_file: %q}\nfencing: {agent: %s}\n", httpPort, w.tokenFile(), w.secrets.means.config(n.keys))
	fmt.Fprintf(&b, "defaults:\n  grace_delay: %v\n  stop_timeout: 3s\n  moves: {max: 0}\n", grace)
	fmt.Fprintf(&b, "  restart: {delay: 100ms, max_delay: 400ms, give_up_after: 4, within: 15s, rejoin_after: %v}\nservices:\n", rejoin)
	for _, s := range services {
		dir := w.book.folder(s.name)
		words := append([]string{
			w.child, "dir=" + dir, "life=" + w.stage.Lab.Lifeline(), "every=" + beat.String(),
			"mutex=" + filepath.Join(dir, "mutex"), "store=" + w.store,
		}, s.words...)
		fmt.Fprintf(&b, "  %s:\n    command: [%s]\n    %s\n    env: {EDITION: \"%d\"}\n", s.name, strings.Join(words, ", "), s.lines, n.edits[s.name])
		b.WriteString(indent(preferred(s.name, n.name)))
		if s.name == fenced {
			fmt.Fprintf(&b, "    fencing: {on_failure: refuse, methods: [{exec: {command: [%s, %s, %s], timeout: 5s}}]}\n",
				w.self, modeFence, w.power.addr())
		}
	}
	return b.String()
}
