package demo

import (
	"context"
	"fmt"
	"time"

	"understudy/supervisor/wait"
)

// stayAway is how long a supervisor that the user has ended stays away.
const stayAway = 3 * time.Second

// hold leaves everything to the user until Ctrl-C, starts again what the user ends, and tells of every takeover.
func (s *show) hold(ctx context.Context, cfg Config) error {
	s.titled("Yours to break. Ctrl-C ends everything.")
	if err := s.until(ctx, comeback, "not all nodes are in place", s.settled); err != nil {
		return err
	}
	active, _, _ := s.active()
	s.say("%s", commands(cfg.Call, s.zk, s.dir, active))
	told := now()
	deaths := map[*node]time.Time{}
	for wait.For(ctx, lookEvery) {
		for _, h := range handovers(s.lives()) {
			if h.to.first > told && now()-h.to.first > time.Second {
				told = h.to.first
				s.say("%s  %s -> %s  gap %s, overlap %s", time.Now().Format("15:04:05"), h.from.node, h.to.node, tell(h.gap), tell(h.overlap))
			}
		}
		for _, n := range s.nodes {
			if err := s.revive(n, deaths); err != nil {
				return err
			}
		}
	}
	return nil
}

// revive starts a supervisor again that has been gone for a while.
func (s *show) revive(n *node, deaths map[*node]time.Time) error {
	if n.running() {
		return nil
	}
	died, ok := deaths[n]
	switch {
	case !ok:
		deaths[n] = time.Now()
		n.is(stopped)
	case time.Since(died) > stayAway:
		delete(deaths, n)
		if err := s.start(n, s.exe); err != nil {
			return err
		}
		s.say("%s  %s is started again, as pid %d", time.Now().Format("15:04:05"), n.name, n.pid())
	}
	return nil
}

// commands are what to try.
func commands(call, zk, dir string, active *node) string {
	return fmt.Sprintf(`
Now it is yours. In another terminal:
  %[1]s status --zk %[2]s
  %[1]s history demo --zk %[2]s
  kill %[3]d             # stop %[4]s, the active one
  kill -9 %[3]d          # kill its supervisor
  kill -STOP %[3]d; sleep 5; kill -CONT %[3]d      # freeze it for a while
  tail -f %[5]s/node-*.log
A supervisor that ends is started again after %[6]v; pids are in the picture.
Ctrl-C here ends everything.
`, call, zk, active.pid(), active.name, dir, stayAway)
}
