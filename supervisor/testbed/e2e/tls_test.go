package e2e

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/testbed/keytest"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
	"understudy/supervisor/testbed/zktest"
)

// secureStage is one server that takes only clients with a certificate of ours on its secure port.
func secureStage(t *testing.T, a *keytest.Authority) (s *kit.Stage, secure string) {
	t.Helper()
	lab := kit.NewLab(t)
	a.Sign(t, "server", net.ParseIP(lab.Addr()))
	l, err := net.Listen("tcp", lab.Addr()+":0")
	must.OK(t, err)
	secure = l.Addr().String()
	_, port, _ := net.SplitHostPort(secure)
	must.OK(t, l.Close())
	zk := zktest.Start(t, zktest.Config{
		Addrs:    []string{lab.Addr()},
		JavaArgs: []string{"-Dzookeeper.serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory"},
		ExtraLines: []string{
			"secureClientPort=" + port, "ssl.clientAuth=need", "ssl.keyStore.type=PEM", "ssl.trustStore.type=PEM",
			"ssl.keyStore.location=" + a.File("server-both"), "ssl.trustStore.location=" + a.File("ca"),
		},
	})
	s = &kit.Stage{Lab: lab, ZK: zk, Servers: zk.ClientAddrs()}
	return s, secure
}

// Over TLS with certificates on both sides everything works as it does without, the guardians' closing of a session included.
func TestZooKeeperOverTLS(t *testing.T) {
	kit.NeedHosts(t)
	zktest.Need(t)
	auth := keytest.New(t)
	auth.Sign(t, "client", nil)
	s, secure := secureStage(t, auth)
	p := brief(t, s)
	tls := fmt.Sprintf("  tls: {ca_file: %s, cert_file: %s, key_file: %s}\n", auth.File("ca"), auth.File("client"), auth.File("client-key"))
	p.Options.ZK = []string{secure}
	config := func(h *kit.Host, tls string) string { return p.Config(t, h, tls, kit.Command(p.Child())) }
	a, b := p.Lab.Machine(t, "a"), p.Lab.Machine(t, "b")
	one := p.FromFile(t, a, config(a, tls))
	run := p.On(t, soon, "a", 0)
	file := config(b, tls)
	p.FromFile(t, b, file)
	p.Stands(t, b)
	p.Succeeds(t, time.Second, "b", run.First, one.Kill9) // the guardians can close the session
	kit.Until(t, soon, "status says that it is active", func() bool {
		r := b.Ask(t, "status", "--config", file)
		return r.Code == 0 && strings.Contains(r.Out, "active")
	})
	for name, tls := range map[string]string{
		"tls":           "",                                                     // plain words to a secure port
		"certificate":   fmt.Sprintf("  tls: {ca_file: %s}\n", auth.File("ca")), // no certificate of ours
		"unknown autho": "  tls: {}\n",                                          // a server that nobody here trusts
	} {
		r := b.Ask(t, "status", "--timeout", "1s", "--config", config(b, tls))
		if r.Code != 3 || strings.Count(r.Err, "\n") != 1 {
			t.Errorf("%s: %+v", name, r)
		}
		t.Logf("%s: %s", name, r.Err)
	}
}
