package promises

import (
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/tick"
)

func TestHostThatIsCutOffIsSucceededAndStandsByWhenHealed(t *testing.T) {
	for name, fault := range map[string]func(t *testing.T, p *kit.Play, h *kit.Host){
		"from everything":         func(t *testing.T, _ *kit.Play, h *kit.Host) { h.Cut(t) },
		"from ZooKeeper":          func(t *testing.T, p *kit.Play, h *kit.Host) { h.CutFrom(t, p.Addrs()...) },
		"what it sends is lost":   func(t *testing.T, p *kit.Play, h *kit.Host) { h.Mute(t, p.Addrs()...) },
		"what it is sent is lost": func(t *testing.T, p *kit.Play, h *kit.Host) { h.Deafen(t, p.Addrs()...) },
	} {
		t.Run(name, func(t *testing.T) {
			p := brief(t, stage(t), "daemons=1", "children=1", "every=2ms")
			a, b, run := p.OnTwoHosts(t)
			at := tick.Now()
			next := p.Succeeds(t, takeover, b.Host.Name, run.First, func() { fault(t, p, a.Host) })
			t.Logf("the child was dead after %v", time.Duration(p.Runs()[0].Last-at))
			p.Alone(t, session, "b")
			a.Host.Heal(t)
			p.Stands(t, a.Host)
			p.Alone(t, time.Second, "b")
			b.Stop(t)
			p.On(t, soon, "a", next.First)
		})
	}
}

// A blip shorter than the lease is nobody's business.
func TestShortCutIsNotNoticed(t *testing.T) {
	p := play(t, stage(t))
	a, _, run := p.OnTwoHosts(t)
	for range 3 {
		a.Host.CutFrom(t, p.Addrs()...)
		p.Alone(t, time.Second, "a")
		a.Host.Heal(t)
		p.Alone(t, session/2, "a")
	}
	p.Untouched(t, run)
}

// The standby's troubles are not the active one's.
func TestStandbyThatIsCutOffDisturbsNobody(t *testing.T) {
	p := play(t, stage(t))
	a, run := p.Active(t, p.Lab.Host(t, "a"))
	p.Options.Session = session // only the standby's has to end
	b := p.Standby(t, p.Lab.Host(t, "b"))
	b.Host.Cut(t)
	p.Alone(t, 2*session, "a")
	b.Host.Heal(t)
	p.Stands(t, b.Host)
	p.Untouched(t, run)
	a.Stop(t)
	p.On(t, soon, "b", run.First)
}

// last is the newest sign of life.
func last(runs []kit.Run) int64 {
	var newest int64
	for _, r := range runs {
		newest = max(newest, r.Last)
	}
	return newest
}
