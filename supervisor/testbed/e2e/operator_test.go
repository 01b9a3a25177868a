package e2e

import (
	"testing"
	"time"

	"understudy/supervisor/testbed/must"
)

// A candidate whose place in the queue is gone gets itself another.
func TestQueueSeatDeletedByHandIsTakenAgain(t *testing.T) {
	p := newPlay(t, stage(t))
	p.Options.Flags = []string{"--election", "queue"}
	a, _, run := p.OnTwoHosts(t)
	queue := p.Path("services", p.Options.Service, "queue")
	seats, _, err := p.Conn().Children(queue)
	must.OK(t, err)
	for _, seat := range seats {
		must.OK(t, p.Conn().Delete(queue+"/"+seat, -1))
	}
	p.Alone(t, 2*time.Second, "a")
	a.Stop(t)
	p.On(t, soon, "b", run.First)
}
