package e2e

import (
	"fmt"
	"net"
	"testing"
	"time"

	"understudy/supervisor/testbed/keytest"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/tick"
)

// certified is a config file's text for a node whose agent shows a certificate.
func certified(t *testing.T, by *keytest.Authority, h *kit.Host, ca string) string {
	t.Helper()
	by.Sign(t, h.Name, net.ParseIP(h.Addr))
	return fmt.Sprintf("fencing: {agent: {listen: \":%s\", tls: {ca_file: %q, cert_file: %q, key_file: %q}}}\n",
		agentPort, ca, by.File(h.Name), by.File(h.Name+"-key"))
}

// With certificates in place of a secret a node is fenced just as fast.
func TestAgentWithCertificates(t *testing.T) {
	p := brief(t, stage(t), "daemons=1", "every=2ms")
	p.Options.Grace = longGrace
	ours := keytest.New(t)
	ha, hb := p.Lab.Host(t, "a"), p.Lab.Host(t, "b")
	a, b, run := p.twoAgents(t, ha, hb, certified(t, ours, ha, ours.File("ca")), certified(t, ours, hb, ours.File("ca")))
	deleted := p.Deleted(t, "services", p.Options.Service, "ActiveStandbyElectorLock")
	at := tick.Now()
	a.Host.CutFrom(t, p.Addrs()...)
	<-deleted
	free := time.Duration(tick.Now() - at)
	took := time.Duration(p.On(t, soon, "b", run.First).First - at)
	t.Logf("the lock was free after %v, it succeeded after %v", free, took)
	p.fencedBy(t, b.Host, "agent")
	p.Alone(t, time.Second, "b")
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
