package e2e

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// waitsInVain demands that a supervisor says something in one line of its log, goes on trying, and starts no child.
func (p *play) waitsInVain(t *testing.T, s *kit.Supervisor, words ...string) {
	t.Helper()
	kit.Until(t, soon, "the fault is told", func() bool { return s.Says(words...) })
	kit.Throughout(t, 2*time.Second, "it goes on, and starts no child", func() bool { return s.Running() && len(p.Runs()) == 0 })
}

func TestZooKeeperThatIsNotThereIsWaitedFor(t *testing.T) {
	p := newPlay(t, stage(t))
	l, err := net.Listen("tcp", "127.84.0.1:0") // nobody else's address: its port stays free
	must.OK(t, err)
	addr := l.Addr().String()
	must.OK(t, l.Close())
	p.Options.ZK = []string{addr}
	a := p.Start(t, p.Lab.Machine(t, "a"))
	p.waitsInVain(t, a, addr, "refused")
	p.Lab.ProxyAt(t, addr, p.Servers[0])
	p.On(t, soon, "a", 0)
}

// guard makes the root with a secret of its own: nobody else may do anything below it.
func (p *play) guard(t *testing.T, secret string) {
	t.Helper()
	must.OK(t, p.Conn().AddAuth("digest", []byte(secret)))
	_, err := p.Conn().Create(p.Options.Root, nil, 0, zk.AuthACL(zk.PermAll))
	must.OK(t, err)
}

func TestWrongDigestIsTold(t *testing.T) {
	p := newPlay(t, stage(t))
	p.guard(t, "owner:right")
	secret := filepath.Join(t.TempDir(), "secret")
	must.OK(t, os.WriteFile(secret, []byte("owner:wrong\n"), 0o600))
	h := p.Lab.Machine(t, "a")
	auth := "  auth: {scheme: digest, file: " + secret + "}\n"
	a := p.FromFile(t, h, p.Config(t, h, auth, kit.Command(p.Options.Child)))
	p.waitsInVain(t, a, p.Options.Root, "not authenticated")
	must.OK(t, os.WriteFile(secret, []byte("owner:right\n"), 0o600))
	a.Stop(t)
	p.FromFile(t, h, p.Config(t, h, auth, kit.Command(p.Options.Child)))
	p.On(t, soon, "a", 0)
	acl, _, err := p.Conn().GetACL(p.Path("services", p.Options.Service))
	must.OK(t, err)
	if len(acl) != 1 || acl[0].Scheme != "digest" {
		t.Errorf("the znodes are open: %v", acl)
	}
}
