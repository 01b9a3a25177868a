package promises

import (
	"testing"
	"time"

	"understudy/supervisor/testbed/kit/tick"
)

// The simulation cuts each way, and each link.
func TestHostThatIsCutOffIsSucceededAndStandsByWhenHealed(t *testing.T) {
	p := brief(t, stage(t), "daemons=1", "children=1", "every=2ms")
	a, b, run := p.OnTwoHosts(t)
	at := tick.Now()
	next := p.Succeeds(t, takeover, b.Host.Name, run.First, func() { a.Host.Cut(t) })
	t.Logf("the child was dead after %v", time.Duration(p.Runs()[0].Last-at))
	p.Alone(t, session/2, "b")
	a.Host.Heal(t)
	p.Stands(t, a.Host)
	p.Alone(t, time.Second, "b")
	b.Stop(t)
	p.On(t, soon, "a", next.First)
}

// A blip shorter than the lease is nobody's business.
func TestShortCutIsNotNoticed(t *testing.T) {
	p := play(t, stage(t))
	a, _, run := p.OnTwoHosts(t)
	a.Host.CutFrom(t, p.Addrs()...)
	p.Alone(t, time.Second, "a")
	a.Host.Heal(t)
	p.Alone(t, session/2, "a")
	p.Untouched(t, run)
}
