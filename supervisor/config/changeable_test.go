package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"understudy/packaging/need"
)

// Whatever another user can change, and root would run or be told by, is refused with its place and what mends it.
func TestWhatWouldLetAnotherUserBecomeRootIsRefused(t *testing.T) {
	need.These(t, "root")
	t.Setenv("SUDO_UID", "")
	const other = 4711
	text := `node: n
zookeeper: {servers: [a], trusted_network: true}
include: [conf.d/*.yaml]
services:
  a:
    command: DIR/bin/program
    env_file: DIR/env
    hooks:
      on_active: DIR/bin/hook
      on_standby: [sh, -e, DIR/bin/script]
    fencing: {methods: [exec: {command: DIR/bin/fence}]}
  b: {command: DIR/bin/program, user: "4711", env_file: DIR/env}
`
	part := "services: {z: {command: [sleep, '1']}}\n"
	for name, c := range map[string]struct {
		spoil func(at func(string) string) error
		want  []string // of what is refused, or with "warning" in front
	}{
		"sound": {func(func(string) string) error { return nil }, nil},
		"the file": {func(at func(string) string) error { return os.Chmod(at("u.yaml"), 0o666) },
			[]string{"u.yaml:1:1: everybody can change it: u.yaml has the mode 0666: chmod o-w u.yaml"}},
		"its directory": {func(at func(string) string) error { return os.Chown(at("conf.d"), other, 0) },
			[]string{"u.yaml:3:10: include: user 4711 can change it: the directory conf.d is theirs: chown 0 conf.d"}},
		"a part": {func(at func(string) string) error {
			return errors.Join(os.Chown(at("conf.d/z.yaml"), 0, other), os.Chmod(at("conf.d/z.yaml"), 0o664))
		}, []string{"u.yaml:3:10: include: the group 4711 can change it: conf.d/z.yaml has the mode 0664: chmod g-w conf.d/z.yaml"}},
		"root's group": {func(at func(string) string) error { return os.Chmod(at("conf.d/z.yaml"), 0o664) }, nil},
		"an ACL": {func(at func(string) string) error {
			acl := "\x02\x00\x00\x00" + "\x01\x00\x06\x00\xff\xff\xff\xff" + "\x02\x00\x06\x00\x67\x12\x00\x00" + "\x04\x00\x04\x00\xff\xff\xff\xff" +
				"\x10\x00\x06\x00\xff\xff\xff\xff" + "\x20\x00\x04\x00\xff\xff\xff\xff"
			return unix.Setxattr(at("conf.d/z.yaml"), "system.posix_acl_access", []byte(acl), 0)
		}, []string{"u.yaml:3:10: include: the group 0 can change it: conf.d/z.yaml has the mode 0664: chmod g-w conf.d/z.yaml"}},
		"a sticky place": {func(at func(string) string) error { return unix.Chmod(at("bin"), 0o1777) }, nil},
		"a link": {func(at func(string) string) error {
			return errors.Join(os.Rename(at("bin/hook"), at("real")), os.Symlink("../real", at("bin/hook")), os.Lchown(at("bin/hook"), other, other))
		}, []string{"u.yaml:9:18: services.a.hooks.on_active.command: user 4711 can change it: the link bin/hook is theirs: chown -h 0 bin/hook"}},
		"a directory of both": {func(at func(string) string) error { return os.Chown(at("bin"), other, 0) }, []string{
			"u.yaml:9:18: services.a.hooks.on_active.command: user 4711 can change it: the directory bin is theirs: chown 0 bin",
			"warning: u.yaml:6:14: services.a.command: user 4711 can change it: the directory bin is theirs: chown 0 bin",
		}},
		"a script":         {func(at func(string) string) error { return os.Chown(at("bin/script"), other, 0) }, []string{"u.yaml:10:19: services.a.hooks.on_standby.command: user 4711 can change it: bin/script is theirs: chown 0 bin/script"}},
		"a way of fencing": {func(at func(string) string) error { return os.Chown(at("bin/fence"), other, 0) }, []string{"u.yaml:11:41: services.a.fencing.methods[0].exec.command: user 4711 can change it: bin/fence is theirs: chown 0 bin/fence"}},
		"an environment":   {func(at func(string) string) error { return os.Chmod(at("env"), 0o602) }, []string{"u.yaml:7:15: services.a.env_file: everybody can change it: env has the mode 0602: chmod o-w env"}},
		"a program":        {func(at func(string) string) error { return os.Chown(at("bin/program"), other, 0) }, []string{"warning: u.yaml:6:14: services.a.command: user 4711 can change it: bin/program is theirs: chown 0 bin/program"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tree(t, map[string]string{"env": "A=b\n", "conf.d/z.yaml": part, "bin/program": "", "bin/hook": "", "bin/script": "", "bin/fence": ""})
			at := func(name string) string { return filepath.Join(dir, name) }
			if err := os.WriteFile(at("u.yaml"), []byte(strings.ReplaceAll(text, "DIR", dir)), 0o644); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"program", "hook", "script", "fence"} {
				if err := os.Chmod(at("bin/"+name), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.spoil(at); err != nil {
				t.Fatal(err)
			}
			r := Read(at("u.yaml"))
			if r.Err() != nil {
				t.Fatal(r.Err())
			}
			var got []string
			warnings, grave := r.Dangers(time.Minute)
			for _, f := range grave {
				if f.Owned != strings.Contains(f.Message, " theirs: chown ") {
					t.Errorf("%v is said to be a matter of owners: %v", f, f.Owned)
				}
				got = append(got, strings.ReplaceAll(f.String(), dir+"/", ""))
			}
			for _, f := range warnings {
				got = append(got, "warning: "+strings.ReplaceAll(f.String(), dir+"/", ""))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if j := r.Refused(grave); (j.Config == nil) != (len(grave) > 0) || (j.Err() != nil) != (len(grave) > 0) {
				t.Errorf("refused: %v", j.Err())
			}
		})
	}
}

// A log that root would refuse to open is told before its lines are lost.
func TestALogThatRootRefusesIsAWarning(t *testing.T) {
	need.These(t, "root")
	t.Setenv("SUDO_UID", "")
	dir := tree(t, map[string]string{"theirs/b.log": ""})
	text := "node: n\nzookeeper: {servers: [a], trusted_network: true}\nservices:\n" +
		"  a: {command: [sleep, '1'], log: {file: DIR/theirs/a.log}}\n  b: {command: [sleep, '1'], user: \"4711\", log: {file: DIR/theirs/b.log}}\n"
	at := filepath.Join(dir, "u.yaml")
	err := errors.Join(os.WriteFile(at, []byte(strings.ReplaceAll(text, "DIR", dir)), 0o644), os.Chown(filepath.Join(dir, "theirs"), 4711, 4711))
	if err != nil {
		t.Fatal(err)
	}
	got := Read(at).Here()
	if len(got) != 1 || got[0].Key != "services.a.log.file" || !strings.Contains(got[0].Message, "belongs to user 4711") {
		t.Errorf("%v", got)
	}
}
