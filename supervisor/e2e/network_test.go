package e2e

import (
	"testing"
	"time"

	"understudy/election/zktest"
	"understudy/supervisor/e2e/kit"
	"understudy/supervisor/e2e/kit/tick"
)

// takeover is how long a standby may take when the active one just vanished: the session, the server's rounding, the
// grace, and something for a busy machine.
const takeover = session + 500*time.Millisecond + grace + time.Second

func TestHostThatIsCutOffIsSucceededAndStandsByWhenHealed(t *testing.T) {
	for name, fault := range map[string]func(t *testing.T, p *play, h *kit.Host){
		"from everything":         func(t *testing.T, _ *play, h *kit.Host) { h.Cut(t) },
		"from ZooKeeper":          func(t *testing.T, p *play, h *kit.Host) { h.CutFrom(t, p.Addrs()...) },
		"what it sends is lost":   func(t *testing.T, p *play, h *kit.Host) { h.Mute(t, p.Addrs()...) },
		"what it is sent is lost": func(t *testing.T, p *play, h *kit.Host) { h.Deafen(t, p.Addrs()...) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlay(t, stage(t), "daemons=1", "children=1", "every=2ms")
			a, b, run := p.pair(t)
			at := tick.Now()
			next := p.succeeds(t, takeover, b.Host.Name, run.First, func() { fault(t, p, a.Host) })
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
	t.Parallel()
	p := newPlay(t, stage(t))
	a, _, run := p.pair(t)
	for range 3 {
		a.Host.CutFrom(t, p.Addrs()...)
		p.Alone(t, 300*time.Millisecond, "a")
		a.Host.Heal(t)
		p.Alone(t, session/2, "a")
	}
	p.Untouched(t, run)
}

// The standby's troubles are not the active one's.
func TestStandbyThatIsCutOffDisturbsNobody(t *testing.T) {
	t.Parallel()
	p := newPlay(t, stage(t))
	a, b, run := p.pair(t)
	b.Host.Cut(t)
	p.Alone(t, 2*session, "a")
	b.Host.Heal(t)
	p.Stands(t, b.Host)
	p.Untouched(t, run)
	a.Stop(t)
	p.On(t, soon, "b", run.First)
}

// A follower that lost its leader goes on answering pings and reads, until it notices. It is given a long time for that.
func TestFollowerThatLostItsLeaderDeceivesNobody(t *testing.T) {
	s := kit.NewStage(t, 3, zktest.Config{SyncLimit: 30})
	follower := (s.ZK.Leader() + 1) % 3
	var rest []string
	for i, addr := range s.Servers {
		if i != follower {
			rest = append(rest, addr)
		}
	}
	t.Run("the active one knows no other server", func(t *testing.T) {
		p := newPlay(t, s)
		p.Cluster = kit.Look(t, rest, p.Options.Root)
		p.Options.ZK = s.Servers[follower : follower+1]
		a, run := p.Active(t, p.Lab.Host(t, "a"))
		p.Options.ZK = rest
		b := p.Standby(t, p.Lab.Host(t, "b"))
		at := tick.Now()
		s.Hosts[follower].CutFrom(t, s.Others(follower)...)
		next := p.On(t, 2*soon, b.Host.Name, run.First)
		t.Logf("the child was dead after %v, succeeded after %v",
			time.Duration(p.Runs()[0].Last-at), time.Duration(next.First-at))
		p.Alone(t, session, "b")
		s.Hosts[follower].Heal(t)
		s.Ready(t)
		kit.Until(t, 2*soon, "a stands by", func() bool {
			m, ok := p.Member(p.Options.Service, "a")
			return ok && m.Role == "standby"
		})
		p.Alone(t, time.Second, "b")
		_ = a
	})
	t.Run("the active one knows them all", func(t *testing.T) {
		p := newPlay(t, s)
		p.Options.ZK = s.Servers[follower : follower+1]
		p.Cluster = kit.Look(t, rest, p.Options.Root)
		p.Options.ZK = s.Servers
		_, _, run := p.pair(t)
		s.Hosts[follower].CutFrom(t, s.Others(follower)...)
		defer s.Hosts[follower].Heal(t)
		kit.Throughout(t, 3*session, "somebody runs", func() bool { return time.Duration(tick.Now()-last(p.Runs())) < takeover })
		t.Logf("%d runs; the first is %s's", len(p.Runs()), run.Node)
	})
}

// last is the newest sign of life.
func last(runs []kit.Run) int64 {
	var newest int64
	for _, r := range runs {
		newest = max(newest, r.Last)
	}
	return newest
}
