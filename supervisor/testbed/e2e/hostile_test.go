package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// tree is all znodes below a path, as somebody with credentials sees them.
func tree(t *testing.T, c *zk.Conn, path string) []string {
	t.Helper()
	all := []string{path}
	names, _, err := c.Children(path)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		t.Fatal(err)
	}
	for _, name := range names {
		all = append(all, tree(t, c, path+"/"+name)...)
	}
	return all
}

// A client without the secret can read, write, add and delete nothing, in a tree that was made without the secret either once
// it is repaired; and the service does not notice any of it.
func TestAStrangerCanDoNothing(t *testing.T) {
	p := newPlay(t, stage(t))
	open := p.Start(t, p.Lab.Machine(t, "a"))
	run := p.On(t, soon, "a", 0)
	open.Stop(t)
	secret := filepath.Join(t.TempDir(), "secret")
	must.OK(t, os.WriteFile(secret, []byte("owner:right\n"), 0o600))
	a, b := p.Lab.Machine(t, "a"), p.Lab.Machine(t, "b")
	auth := "  auth: {scheme: digest, file: " + secret + "}\n"
	file := p.Config(t, a, auth, kit.Command(p.Child()))
	r := a.Ask(t, "check", "--repair-acl", "--config", file)
	if r.Code != 0 || !strings.Contains(r.Out, "repaired: "+p.Options.Root+"\n") || !strings.Contains(r.Out, "were open to others") {
		t.Fatalf("%+v", r)
	}
	if r := a.Ask(t, "check", "--repair-acl", "--config", file); r.Code != 0 || strings.Contains(r.Out, "repaired") {
		t.Errorf("a second time: %+v", r)
	}
	p.FromFile(t, a, file)
	run = p.On(t, soon, "a", run.First)
	p.FromFile(t, b, p.Config(t, b, auth, kit.Command(p.Child())))
	stranger := p.Conn() // has no credentials yet
	friend := kit.Look(t, p.Options.ZK, p.Options.Root)
	must.OK(t, friend.Conn().AddAuth("digest", []byte("owner:right")))
	kit.Until(t, soon, "b stands", func() bool { _, ok := friend.Member(p.Options.Service, "b"); return ok })

	all := tree(t, friend.Conn(), p.Options.Root)
	if len(all) < 10 {
		t.Fatalf("only %v", all)
	}
	for _, path := range all {
		for what, err := range kit.Trespass(stranger, path) {
			if what == "delete" && path == p.Options.Root {
				continue // its parent is everybody's, and it is not empty
			}
			if !errors.Is(err, zk.ErrNoAuth) && !errors.Is(err, zk.ErrNoNode) { // an ephemeral may have gone
				t.Errorf("%s %s: %v", what, path, err)
			}
		}
	}
	if err := stranger.Delete(p.Options.Root, -1); err == nil {
		t.Error("the root is deleted")
	}
	p.Alone(t, 200*time.Millisecond, "a")
	if now := p.Running(); now[0].Pid != run.Pid {
		t.Errorf("the child was touched: %+v", now)
	}
}
