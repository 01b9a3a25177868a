package main

import (
	"bytes"
	"path/filepath"

	"understudy/supervisor/testbed/kit"
)

// httpPort is where each node serves its status.
const httpPort = "8437"

// tokenFile holds what nobody guesses.
func (w *world) tokenFile() string { return filepath.Join(w.dir, "http.token") }

// siege has strangers take all that the nodes' ports give, and flood the sockets that programs notify. Nothing may come of it.
func siege(w *world, s *struck) func() {
	s.Target = "everywhere"
	sockets, _ := filepath.Glob("/run/understudy/usnotify-*/*") // the pattern is well formed
	enough := make(chan struct{})
	for i, n := range w.nodes {
		w.tasks.Go(func() {
			what := kit.Siege{
				HTTP: httpPort, Sources: 4, Hold: 60, Agent: agentPort, Garbage: bytes.Repeat([]byte{0, 0, 0, 64, 'x'}, 40), Pause: visitEvery,
			}
			if i < len(sockets) {
				what.Notify = sockets[i]
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
			w.mu.Lock()
			w.record.past.Besieged += int(got.Held.Load() + got.Guesses.Load() + got.Garbage.Load() + got.Notes.Load())
			w.mu.Unlock()
		})
	}
	return func() { close(enough) }
}
