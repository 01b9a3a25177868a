package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"understudy/supervisor/testbed/chaos/history"
	"understudy/supervisor/testbed/kit"
)

// httpPort is where each node serves its status.
const httpPort = "8437"

// siege has strangers take all that the nodes' ports give, and flood the sockets that programs notify. Nothing may come of it.
func siege(w *world, s *struck) func() {
	s.Target = "everywhere"
	enough := make(chan struct{})
	for _, n := range w.fleet.nodes {
		w.tasks.Go(func() {
			what := kit.Siege{
				HTTP: httpPort, Sources: 4, Hold: 60, Agent: agentPort, Garbage: bytes.Repeat([]byte{0, 0, 0, 64, 'x'}, 40), Pause: visitEvery,
			}
			if sockets := w.fleet.notified(n); len(sockets) > 0 {
				what.Notify = sockets[0]
			}
			stop := make(chan struct{})
			w.tasks.Go(func() {
				select {
				case <-enough:
				case <-w.tasks.over:
				}
				close(stop)
			})
			got := n.host.Besiege(what, stop)
			w.record.count(func(c *history.Counts) {
				c.Besieged += int(got.Held.Load() + got.Guesses.Load() + got.Garbage.Load() + got.Notes.Load())
			})
		})
	}
	return func() { close(enough) }
}

// notified are the sockets that a node's programs notify: those of its network namespace, whoever else has some on this machine.
func (fl *fleet) notified(n *node) (paths []string) {
	fl.mu.Lock()
	sup := n.sup
	fl.mu.Unlock()
	if sup == nil {
		return nil
	}
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/unix", sup.Pid)) // empty when it is gone
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if path := words[len(words)-1]; strings.HasPrefix(path, "/run/understudy/usnotify-") {
			paths = append(paths, path)
		}
	}
	return paths
}
