package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/testbed/must"
)

// A command on one node after the other, which is broken off and goes on; and the services that it has moved are spread again.
func TestAFleetIsRolledAndBalanced(t *testing.T) {
	f := newFleet(t, 4, 5*time.Millisecond)
	f.Serve(t, f.Lab.Machine(t, "a"))
	f.AllOn(t, "a", 0)
	f.Serve(t, f.Lab.Machine(t, "b"))
	f.AllStand(t, "b")
	balanced := func() {
		t.Helper()
		if r := f.p.ask(t, nil, "balance"); r.Code != 0 || !strings.Contains(r.Out, "Done: 2 services moved") {
			t.Errorf("%+v", r)
		}
		on := map[string]int{}
		for _, name := range f.Names {
			lock, _ := f.Lock(name)
			on[lock.Node]++
		}
		if on["a"] != 2 || on["b"] != 2 {
			t.Errorf("after balance: %v", on)
		}
	}
	if r := f.p.ask(t, nil, "balance", "--dry-run"); r.Code != 0 || !strings.Contains(r.Out, "2 services would move") {
		t.Errorf("%+v", r)
	}
	balanced()

	dir := t.TempDir()
	script := filepath.Join(dir, "upgrade")
	must.OK(t, os.WriteFile(script, []byte("#!/bin/sh\necho $UNDERSTUDY_NODE >>"+dir+"/began\ntest $UNDERSTUDY_NODE = a || test -e "+dir+"/mended\n"), 0o700))
	if r := f.p.ask(t, nil, "roll", "--", script); r.Code != 1 || !strings.Contains(r.Err, "on b, which stays drained: ") {
		t.Errorf("%+v", r)
	}
	f.AllOn(t, "a", 0)
	must.OK(t, os.WriteFile(filepath.Join(dir, "mended"), nil, 0o600))
	if r := f.p.ask(t, nil, "roll", "--", script); r.Code != 0 || !strings.Contains(r.Out, "Going on after a.") || !strings.Contains(r.Out, "Done on 2 nodes.") {
		t.Errorf("%+v", r)
	}
	if began, err := os.ReadFile(filepath.Join(dir, "began")); err != nil || string(began) != "a\nb\nb\n" {
		t.Errorf("it ran on %q, %v", began, err)
	}
	balanced()
}
