package e2e

import (
	"testing"
	"time"

	"understudy/supervisor/e2e/kit"
)

// An operator who deletes the lock or the breadcrumb may cost an interruption, never a second child. Who deletes both
// takes away all there is to know that a child runs: that is promised nothing.
func TestZnodesDeletedByHandLetNobodyRunTwice(t *testing.T) {
	t.Parallel()
	for name, paths := range map[string][]string{
		"the lock":                {"ActiveStandbyElectorLock"},
		"the breadcrumb":          {"ActiveBreadCrumb"},
		"the member and the lock": {"members/a", "ActiveStandbyElectorLock"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := brief(t, stage(t), "term=ignore", "daemons=1", "every=2ms")
			p.Options.StopTimeout = 300 * time.Millisecond
			p.OnTwoHosts(t)
			for range 3 {
				for _, path := range paths {
					_ = p.Conn().Delete(p.Path("services", p.Options.Service, path), -1) // it may be gone just now
				}
				kit.Throughout(t, 2*time.Second, "there is no more than one child", func() bool {
					return len(kit.Overlaps(p.Runs())) == 0
				})
			}
			var node string
			kit.Until(t, session+takeover, "somebody runs, and lock and breadcrumb are its own", func() bool {
				running := p.Running()
				if len(running) != 1 {
					return false
				}
				node = running[0].Node
				lock, locked := p.Lock(p.Options.Service)
				crumb, marked := p.BreadCrumb(p.Options.Service)
				return locked && marked && lock.Node == node && crumb.Node == node
			})
			p.Alone(t, time.Second, node)
		})
	}
}

// A candidate whose place in the queue is gone gets itself another.
func TestQueueSeatDeletedByHandIsTakenAgain(t *testing.T) {
	t.Parallel()
	p := newPlay(t, stage(t))
	p.Options.Flags = []string{"--election", "queue"}
	a, _, run := p.OnTwoHosts(t)
	queue := p.Path("services", p.Options.Service, "queue")
	seats, _, err := p.Conn().Children(queue)
	must(t, err)
	for _, seat := range seats {
		must(t, p.Conn().Delete(queue+"/"+seat, -1))
	}
	p.Alone(t, 2*time.Second, "a")
	a.Stop(t)
	p.On(t, soon, "b", run.First)
}
