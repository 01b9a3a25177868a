package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"understudy/supervisor/testbed/kit"
)

// server is the index of the server that leads, or of some follower.
func (w *world) server(s *stroke, leader bool) (int, error) {
	i := w.stage.ZK.Leader()
	if i < 0 {
		return 0, errors.New("no server leads")
	}
	if !leader {
		i = (i + 1 + s.dice.IntN(len(w.stage.Hosts)-1)) % len(w.stage.Hosts)
	}
	s.target = w.stage.Hosts[i].Name
	return i, nil
}

func killServers(many int, leader bool) strike {
	return func(w *world, s *stroke) (func(), error) {
		first, err := w.server(s, leader)
		if err != nil {
			return nil, err
		}
		for i := range many {
			w.must(w.stage.ZK.Kill((first + i) % len(w.stage.Hosts)))
		}
		return w.startServers, nil
	}
}

func (w *world) startServers() {
	for i := range w.stage.Hosts {
		if w.stage.ZK.PID(i) == 0 {
			w.must(w.stage.ZK.StartServer(i))
		}
	}
}

func freezeServer(leader bool) strike {
	return func(w *world, s *stroke) (func(), error) {
		i, err := w.server(s, leader)
		pid := 0
		if err == nil {
			pid = w.stage.ZK.PID(i)
		}
		if pid == 0 {
			return nil, errDown
		}
		w.must(w.stage.ZK.Freeze(i))
		return func() {
			if pid == w.stage.ZK.PID(i) { // otherwise it was killed since
				w.must(w.stage.ZK.Thaw(i))
			}
		}, nil
	}
}

// grants are ticks of servers, of which twenty are the longest session. Each is longer than a lease: P7.
var grants = []time.Duration{tickTime, 130 * time.Millisecond, 160 * time.Millisecond}

// regrant has the servers restarted one by one with another tick, so that sessions come back with less than before, or later begin
// with more. A server that it does not come to has its new tick when it starts again.
func regrant(w *world, s *stroke) (func(), error) {
	w.granted = (w.granted + 1 + s.dice.IntN(len(grants)-1)) % len(grants)
	t := grants[w.granted]
	for i := range w.stage.Hosts { // a follower may lag as long as before
		w.must(w.stage.ZK.Reconfigure(i, fmt.Sprintf("tickTime=%d\ninitLimit=%d\nsyncLimit=%d", t.Milliseconds(), 20*tickTime/t, 4*tickTime/t)))
	}
	s.target = fmt.Sprintf("one by one: %v", min(session, 20*t))
	return w.beside(func(ctx context.Context) {
		for i := range w.stage.Hosts {
			w.mu.Lock()
			if ctx.Err() == nil && w.stage.ZK.PID(i) != 0 {
				w.must(w.stage.ZK.Kill(i)) // one that is frozen would not stop
				w.must(w.stage.ZK.StartServer(i))
			}
			w.mu.Unlock()
			ready, cancel := context.WithTimeout(ctx, 3*sec)
			_ = w.stage.ZK.WaitReady(ready) // others may be out of order too
			cancel()
		}
	}), nil
}

// endSession has a client without credentials end the session of an active node, which is well, frozen or cut off, and has a lease.
func endSession(w *world, s *stroke) (undo func(), err error) {
	service := w.any(s).name
	r, ok := w.running()[service]
	if !ok || w.node(r.Node).off {
		return nil, errDown
	}
	n := w.node(r.Node)
	s.target = n.name
	switch sup := n.sup; s.dice.IntN(3) {
	case 1:
		if n.hit > 1 {
			return nil, errDown
		}
		n.hit++
		sup.Signal(syscall.SIGSTOP)
		undo = func() { sup.Signal(syscall.SIGCONT) }
		s.target += ", frozen"
	case 2:
		n.host.CutFrom(w, w.stage.Addrs()...)
		undo = func() { w.rejoin(n) }
		s.target += ", cut off"
	}
	server := w.stage.Servers[s.dice.IntN(len(w.stage.Servers))]
	w.beside(func(context.Context) {
		_ = kit.TryEndSession(server, w.look.Path("services", service, "ActiveStandbyElectorLock")) // the server may be down
	})
	return undo, nil
}

// wedged is how long an ensemble whose network is whole may take no writes before it is restarted, as an operator would. ZooKeeper
// 3.8.0 does that for ever now and then, when its leader was not heard for about as long as its followers wait.
const wedged = 20 * time.Second

// serve waits until all servers serve. How long they take for that does not count against Understudy.
func (w *world) serve() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	for {
		w.must(w.stage.ZK.WaitReady(ctx))
		written := make(chan struct{})
		go func() { // ends once the servers serve
			kit.Reached(wedged, func() bool { _, err := w.look.Conn().Set("/", nil, -1); return err == nil })
			close(written)
		}()
		select {
		case <-written:
			return
		case <-time.After(wedged):
			w.say("        ZooKeeper has a leader and takes no writes: its servers are restarted")
		}
		for i := range w.stage.Hosts {
			w.must(w.stage.ZK.Restart(i))
		}
	}
}

// sew has the followers take all their data from the leader, as an operator would, where servers disagree about which ephemeral znodes
// there are. That is ZooKeeper's own fault: a follower of 3.8 that loses its leader may write transactions twice to its log, and come
// to other data from it than the rest (ZOOKEEPER-4712).
func (w *world) sew() (sewn bool) {
	leader := w.stage.ZK.Leader()
	for i := range w.stage.Hosts {
		if w.ephemerals(i) == w.ephemerals(leader) {
			continue
		}
		w.say("        ZooKeeper's %s has other ephemeral znodes than its leader: it takes the leader's data", w.stage.Hosts[i].Name)
		for _, do := range []func(int) error{w.stage.ZK.Kill, w.stage.ZK.Wipe, w.stage.ZK.StartServer} {
			w.must(do(i))
		}
		w.serve()
		sewn = true
	}
	return sewn
}

// ephemerals are the paths in a server's dump.
func (w *world) ephemerals(i int) string {
	dump, err := w.stage.ZK.FourLetter(i, "dump")
	w.must(err)
	paths := slices.DeleteFunc(strings.Split(dump, "\n"), func(line string) bool { return !strings.HasPrefix(line, "\t/") })
	slices.Sort(paths)
	return strings.Join(paths, "")
}

// keepServerLogs copies them beside the supervisors', and where something was found the transactions, too.
func (w *world) keepServerLogs() {
	for i, h := range w.stage.Hosts {
		if w.report.found() > 0 {
			w.must(os.CopyFS(filepath.Join(w.logs, h.Name), os.DirFS(w.stage.ZK.DataDirs()[i])))
		}
		text, err := os.ReadFile(w.stage.ZK.LogFile(i))
		w.must(err)
		w.must(os.WriteFile(filepath.Join(w.logs, h.Name+".log"), text, 0o644))
	}
}
