package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"

	"understudy/supervisor/testbed/kit"
)

// strangers come to ZooKeeper without credentials, and try everything at what runs: to delete a lock, to forge a
// record, to pause.
func strangers(w *world, s *stroke) (func(), error) {
	s.target = "ZooKeeper"
	return w.beside(func(ctx context.Context) {
		for i := 0; sleep(ctx, moment/5); i++ {
			service, n := w.services[i%len(w.services)].name, w.nodes[i%len(w.nodes)].name
			for _, path := range []string{
				w.look.Path(), w.look.Path("nodes", n), w.look.Path("services", service, "members", n), w.look.Path("services", service, "control"),
				w.look.Path("services", service, "ActiveStandbyElectorLock"), w.look.Path("services", service, "ActiveBreadCrumb"),
			} {
				for what, err := range kit.Trespass(w.stranger.Conn(), path) {
					if err == nil {
						w.find("let in: a client without credentials could %s %s", what, path)
					}
				}
			}
		}
	}), nil
}

// siege has strangers take all that the nodes' ports give, and flood the sockets that programs notify.
func siege(w *world, s *stroke) (func(), error) {
	s.target = "everywhere"
	var all []func(context.Context)
	for _, n := range w.nodes {
		what := kit.Siege{
			HTTP: httpPort, Sources: 4, Hold: 60, Agent: agentPort, Garbage: bytes.Repeat([]byte{0, 0, 0, 64, 'x'}, 40),
			Notify: notified(n.sup), Pause: moment / 5,
		}
		all = append(all, func(ctx context.Context) { n.host.Besiege(what, ctx.Done()) })
	}
	return w.beside(all...), nil
}

// notified is a socket that some program in the supervisor's network notifies; empty if there is none.
func notified(sup *kit.Supervisor) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/unix", sup.Pid)) // empty when it is gone
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if path := words[len(words)-1]; strings.Contains(path, "/usnotify-") {
			return path
		}
	}
	return ""
}
