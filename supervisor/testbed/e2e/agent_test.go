package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/tick"
	"understudy/supervisor/testbed/must"
)

const agentPort = "8438"

// withAgent is a config file's text for a node whose agent shares this secret.
func withAgent(t *testing.T, secret string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "agent.secret")
	must.OK(t, os.WriteFile(file, []byte(secret+"\n"), 0o600))
	return fmt.Sprintf("fencing: {agent: {listen: \":%s\", secret_file: %q}}\n", agentPort, file)
}

const sharedSecret = "a secret that all of them share"

// agents starts the active one on a and a standby on b, both with agents.
func (p *play) agents(t *testing.T, one, other string, lines ...string) (a, b *kit.Supervisor, run kit.Run) {
	t.Helper()
	return p.twoAgents(t, p.Lab.Host(t, "a"), p.Lab.Host(t, "b"), withAgent(t, one), withAgent(t, other), lines...)
}

// twoAgents is agents, with what their config files say of them.
func (p *play) twoAgents(t *testing.T, ha, hb *kit.Host, one, other string, lines ...string) (a, b *kit.Supervisor, run kit.Run) {
	t.Helper()
	lines = append([]string{kit.Command(p.Options.Child)}, lines...)
	a = p.FromFile(t, ha, p.Config(t, ha, one, lines...))
	run = p.On(t, soon, "a", 0)
	b = p.FromFile(t, hb, p.Config(t, hb, other, lines...))
	p.Stands(t, hb)
	a.TwoGuardians(t)
	return a, b, run
}

// fencedBy demands that the newest activation says so.
func (p *play) fencedBy(t *testing.T, h *kit.Host, want string) {
	t.Helper()
	p.fencedWith(t, h, want, "--zk", p.Options.ZK[0], "--root", p.Options.Root)
}

// fencedWith is fencedBy, with the words that say which cluster.
func (p *play) fencedWith(t *testing.T, h *kit.Host, want string, cluster ...string) {
	t.Helper()
	var got struct {
		Activations []struct{ Node, Fenced string }
	}
	kit.Until(t, soon, "the history says that it was fenced by "+want, func() bool {
		answer := h.Ask(t, append([]string{"history", p.Options.Service, "--json"}, cluster...)...)
		if answer.Code != 0 || json.Unmarshal([]byte(answer.Out), &got) != nil {
			return false
		}
		for _, a := range got.Activations {
			if a.Node == h.Name && a.Fenced == want {
				return true
			}
		}
		return false
	})
}

// A node that only ZooKeeper cannot reach is asked by its successor. Nothing has to be waited for then but the session's end.
func TestNodeCutOffFromZooKeeperIsFencedByItsAgent(t *testing.T) {
	refuse := "fencing: {methods: [{agent: {}}], on_failure: refuse}"
	for name, c := range map[string]struct {
		method string
		held   string // how its tree is; a cgroup unless said
	}{
		"asked while the grace lasts": {},
		"as a method":                 {method: refuse},
		"in a PID namespace":          {method: refuse, held: "pidns"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.held != "" {
				need.These(t, c.held)
			}
			p := brief(t, stage(t), "daemons=1", "children=1", "every=2ms")
			p.Options.Grace = longGrace
			var lines []string
			if c.method != "" {
				lines = append(lines, c.method)
			}
			if c.held != "" {
				lines = append(lines, "contain: "+c.held)
			}
			a, b, run := p.agents(t, sharedSecret, sharedSecret, lines...)
			deleted := p.Deleted(t, "services", p.Options.Service, "ActiveStandbyElectorLock")
			at := tick.Now()
			a.Host.CutFrom(t, p.Addrs()...)
			<-deleted
			free := time.Duration(tick.Now() - at)
			next := p.On(t, soon, "b", run.First)
			took, dead := time.Duration(next.First-at), time.Duration(p.Runs()[0].Last-at)
			t.Logf("the child was dead after %v, the lock free after %v, succeeded after %v", dead, free, took)
			p.Alone(t, time.Second, "b")
			p.fencedBy(t, b.Host, "agent")
			a.Host.Heal(t)
			p.Stands(t, a.Host)
			p.Alone(t, time.Second, "b")
		})
	}
}

// remaining is how long the lease of a host's supervisor lasts, as its metrics say.
func remaining(t *testing.T, addr string) (left time.Duration, ok bool) {
	t.Helper()
	client := http.Client{Timeout: 2 * time.Second}
	resp, err := client.Get("http://" + addr + "/metrics")
	if err != nil {
		return 0, false
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		var seconds float64
		if n, _ := fmt.Sscanf(line, "understudy_lease_remaining_seconds %g", &seconds); n == 1 {
			return time.Duration(seconds * float64(time.Second)), true
		}
	}
	return 0, false
}

// leastLeft samples the lease for a while.
func leastLeft(t *testing.T, addr string, while time.Duration) time.Duration {
	t.Helper()
	least := time.Hour
	kit.Throughout(t, while, "metrics are served", func() bool {
		left, ok := remaining(t, addr)
		least = min(least, left)
		return ok
	})
	return least
}

// A single wrapped command has an agent when it is given a secret.
func TestSingleCommandIsFencedByItsAgent(t *testing.T) {
	p := brief(t, stage(t))
	p.Options.Grace = longGrace
	secret, _ := secretOf(t, sharedSecret)
	p.Options.Flags = append(p.Options.Flags, "--agent-secret", secret, "--agent-listen", ":"+agentPort)
	p.Options.Child = p.Child()
	ha, hb := p.Lab.Host(t, "a"), p.Lab.Host(t, "b")
	a, run := p.Active(t, ha)
	b := p.Start(t, hb)
	p.Stands(t, hb)
	a.TwoGuardians(t)
	deleted := p.Deleted(t, "services", p.Options.Service, "ActiveStandbyElectorLock")
	at := tick.Now()
	a.Host.CutFrom(t, p.Addrs()...)
	<-deleted
	free := time.Duration(tick.Now() - at)
	took := time.Duration(p.On(t, soon, "b", run.First).First - at)
	t.Logf("the lock was free after %v, it succeeded after %v", free, took)
	p.fencedBy(t, b.Host, "agent")
}
