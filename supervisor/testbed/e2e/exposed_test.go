package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// A tree that was made without credentials, or by a stranger beforehand, stays open: a stranger deletes what is in it, whomever that
// belongs to. Log, status and check say so until it is closed; the program does not notice.
func TestATreeThatIsOpenToStrangersIsMentioned(t *testing.T) {
	p := newPlay(t, stage(t))
	stranger := p.Conn() // has no credentials yet
	everybody := zk.WorldACL(zk.PermAll)
	folder := filepath.Join(p.Options.Root, "services", p.Options.Service)
	for _, path := range []string{p.Options.Root, filepath.Dir(folder), folder, filepath.Join(folder, "members")} {
		_, err := stranger.Create(path, nil, 0, everybody)
		must.OK(t, err)
	}
	secret, _ := secretOf(t, "owner:right")
	h := p.Lab.Machine(t, "a")
	file := p.Config(t, h, "  auth: {scheme: digest, file: "+secret+"}\n", kit.Command(p.Child()))
	a := p.FromFile(t, h, file)
	run := p.On(t, soon, "a", 0)
	kit.Until(t, soon, "the stranger deletes what is a's alone", func() bool { return stranger.Delete(filepath.Join(folder, "members", "a"), -1) == nil })

	const words = "may change " // what, and how many more, stands behind it
	kit.Until(t, soon, "the log says so", func() bool { return a.Says(words, folder[:len(p.Options.Root)], "check --repair-acl") })
	kit.Until(t, soon, "the status says so", func() bool {
		r := h.Ask(t, "status", "--config", file, "--json")
		return r.Code == 0 && strings.Contains(r.Out, words)
	})
	if r := h.Ask(t, "status", "--config", file); r.Code != 0 || !strings.Contains(strings.Join(strings.Fields(r.Out), " "), words) {
		t.Errorf("the status for people: %+v", r)
	}
	if r := h.Ask(t, "check", "--repair-acl", "--config", file); r.Code != 0 {
		t.Fatalf("repair: %+v", r)
	}
	kit.Until(t, soon, "it is closed", func() bool { return a.Says("is not open to others any more") })
	kit.Until(t, soon, "the status does not say so any more", func() bool {
		r := h.Ask(t, "status", "--config", file, "--json")
		return r.Code == 0 && !strings.Contains(r.Out, words)
	})
	if strings.Count(a.Log(), words) != 1 {
		t.Errorf("it is said more than once")
	}
	if now := p.Running(); len(now) != 1 || now[0].Pid != run.Pid {
		t.Errorf("the child was touched: %+v", now)
	}
}
