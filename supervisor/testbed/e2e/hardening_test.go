package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// Rights that a service gives up stay given up: at its start, in what checks it, when it is restarted in place, and when another
// image of the supervisor starts it anew. A change of them starts it anew; an upgrade alone does not.
func TestRightsThatAServiceGivesUpStayGivenUp(t *testing.T) {
	p := newPlay(t, stage(t))
	b := kit.Install(t)
	dir := t.TempDir()
	for d := dir; d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
		must.OK(t, os.Chmod(d, 0o755))
	}
	report := filepath.Join(dir, "report")
	must.OK(t, os.Mkdir(report, 0o700))
	must.OK(t, os.Chown(report, 65534, 65534))
	script := filepath.Join(dir, "script")
	must.OK(t, os.WriteFile(script, []byte(`#!/bin/sh
(grep -e NoNewPrivs -e CapBnd -e CapEff /proc/self/status | tr -d '\t'; env | grep -v -e ^UNDERSTUDY_ -e ^_= -e ^PWD= -e ^SHLVL= -e ^OLDPWD= | sort) >$1/$2.new
mv $1/$2.new $1/$2
[ $2 = check ] || exec sleep 1000
`), 0o755))
	one := p.Lab.Machine(t, "a")
	path := p.Config(t, one, "", fmt.Sprintf("command: [%s, %s, program]", script, report), fmt.Sprintf("health: {exec: [%s, %s, check], interval: 1s}", script, report),
		"user: nobody", "no_new_privileges: true", "capabilities: {bounding: [CAP_NET_BIND_SERVICE, CAP_CHOWN], ambient: [CAP_NET_BIND_SERVICE]}",
		"inherit_env: false", "env: {GIVEN: x}")
	s := one.UnderstudyAt(t, string(b), "run", "--config", path)
	p.Started = append(p.Started, s)
	want := func(noNewPrivs int) string {
		return fmt.Sprintf("CapEff:0000000000000400\nCapBnd:0000000000000401\nNoNewPrivs:%d\nGIVEN=x\nHOME=/nonexistent\nLOGNAME=nobody\nPATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\nUSER=nobody\n", noNewPrivs)
	}
	finds := func(when, what, want string) {
		t.Helper()
		var text []byte
		kit.Until(t, soon, when+": "+what+" tells", func() bool {
			var err error
			text, err = os.ReadFile(filepath.Join(report, what))
			return err == nil
		})
		if string(text) != want {
			t.Errorf("%s: %s has\n%s\nwanted\n%s", when, what, text, want)
		}
		must.OK(t, os.Remove(filepath.Join(report, what)))
	}
	finds("start", "program", want(1))
	finds("start", "check", want(1))
	b.Upgraded(t, s)
	kit.Until(t, soon, "it is checked after the upgrade", func() bool { _, err := os.Stat(filepath.Join(report, "check")); return err == nil })
	if n := strings.Count(s.Log(), "program started"); n != 1 {
		t.Errorf("it was started %d times", n)
	}
	finds("after an upgrade", "check", want(1))
	p.order(t, p.Lab.Host(t, "op"), "restart", p.Options.Service)
	finds("restart", "program", want(1))
	text, err := os.ReadFile(path)
	must.OK(t, err)
	must.OK(t, os.WriteFile(path, []byte(strings.Replace(string(text), "no_new_privileges: true", "no_new_privileges: false", 1)), 0o600))
	finds("change", "program", want(0))
}
