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

func TestMain(m *testing.M) { os.Exit(m.Run()) }

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
			[]string{"u.yaml: u.yaml belongs to root and group 0, and its mode 0666 lets others write to it: chmod 644 u.yaml"}},
		"its directory": {func(at func(string) string) error { return os.Chown(at("conf.d"), other, 0) },
			[]string{"u.yaml:3:11: include[0]: conf.d belongs to user 4711, who can change what is in it: chown 0 conf.d, or use a file elsewhere"}},
		"a part": {func(at func(string) string) error {
			return errors.Join(os.Chown(at("conf.d/z.yaml"), 0, other), os.Chmod(at("conf.d/z.yaml"), 0o664))
		}, []string{"u.yaml:3:11: include[0]: conf.d/z.yaml belongs to root and group 4711, and its mode 0664 lets others write to it: chmod 644 conf.d/z.yaml"}},
		"an ACL": {func(at func(string) string) error {
			acl := "\x02\x00\x00\x00" + "\x01\x00\x06\x00\xff\xff\xff\xff" + "\x02\x00\x06\x00\x67\x12\x00\x00" + "\x04\x00\x04\x00\xff\xff\xff\xff" +
				"\x10\x00\x06\x00\xff\xff\xff\xff" + "\x20\x00\x04\x00\xff\xff\xff\xff"
			return unix.Setxattr(at("conf.d/z.yaml"), "system.posix_acl_access", []byte(acl), 0)
		}, []string{"u.yaml:3:11: include[0]: conf.d/z.yaml belongs to root and group 0, and its mode 0664 lets others write to it: chmod 644 conf.d/z.yaml"}},
		"a sticky place": {func(at func(string) string) error { return unix.Chmod(at("bin"), 0o1777) }, nil},
		"a link": {func(at func(string) string) error {
			return errors.Join(os.Rename(at("bin/hook"), at("real")), os.Symlink("../real", at("bin/hook")), os.Lchown(at("bin/hook"), other, other))
		}, []string{"u.yaml:9:18: services.a.hooks.on_active.command: bin/hook is a link of user 4711, who can change it: chown -h 0 bin/hook"}},
		"a directory of both": {func(at func(string) string) error { return os.Chown(at("bin"), other, 0) }, []string{
			"u.yaml:9:18: services.a.hooks.on_active.command: bin belongs to user 4711, who can change what is in it: chown 0 bin, or use a file elsewhere",
			"warning: u.yaml:6:14: services.a.command: bin belongs to user 4711, who can change what is in it: chown 0 bin, or use a file elsewhere",
		}},
		"a script":         {func(at func(string) string) error { return os.Chown(at("bin/script"), other, 0) }, []string{"u.yaml:10:19: services.a.hooks.on_standby.command: bin/script belongs to user 4711, who can change it: chown 0 bin/script"}},
		"a way of fencing": {func(at func(string) string) error { return os.Chown(at("bin/fence"), other, 0) }, []string{"u.yaml:11:41: services.a.fencing.methods[0].exec.command: bin/fence belongs to user 4711, who can change it: chown 0 bin/fence"}},
		"an environment":   {func(at func(string) string) error { return os.Chmod(at("env"), 0o602) }, []string{"u.yaml:7:15: services.a.env_file: env belongs to root and group 0, and its mode 0602 lets others write to it: chmod 600 env"}},
		"a program":        {func(at func(string) string) error { return os.Chown(at("bin/program"), other, 0) }, []string{"warning: u.yaml:6:14: services.a.command: bin/program belongs to user 4711, who can change it: chown 0 bin/program"}},
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
			r := Read(at("u.yaml"), "")
			if _, ignored, err := LoadPartly(at("u.yaml")); (err != nil || len(ignored) > 0) != (len(r.Faults) > 0) {
				t.Errorf("a command that only asks is told %v, %v", ignored, err)
			}
			var got []string
			warnings, refused, _ := r.Dangers(time.Minute)
			refused = append(r.Faults, refused...)
			for _, f := range refused {
				got = append(got, strings.ReplaceAll(f.String(), dir+"/", ""))
			}
			for _, f := range warnings {
				got = append(got, "warning: "+strings.ReplaceAll(f.String(), dir+"/", ""))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if j := r.Refused(refused); (j.Config == nil) != (len(refused) > 0) || (j.Err() != nil) != (len(refused) > 0) {
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
	got := Read(at, "").Here()
	if len(got) != 2 || got[0].Key != "services.a.log.file" || got[1].Key != "services.b.user" || !strings.Contains(got[0].Message, "belongs to user 4711") {
		t.Errorf("%v", got)
	}
}

// A secret, a key or whatever says who is believed belongs to us alone, whichever key names it. A service runs all the same.
func TestSecretsAndKeysOfAProgramsUserAreWarnedOf(t *testing.T) {
	need.These(t, "root")
	t.Setenv("SUDO_UID", "")
	const user = 4711
	text := `node: n
zookeeper: {servers: [127.0.0.1], auth: {scheme: digest, file: DIR/zk}, tls: {ca_file: DIR/zk.ca, cert_file: DIR/zk.cert, key_file: DIR/zk.key}}
http: {listen: "127.0.0.1:1", token_file: DIR/token, read_token_file: DIR/read, tls: {cert_file: DIR/web.cert, key_file: DIR/web.key}}
fencing: {agent: {listen: ":1", secret_file: DIR/agent}}
services:
  a:
    command: [sleep, '1']
    user: "4711"
    fencing:
      methods:
        - ssh: {user: root, key_file: DIR/ssh, known_hosts: DIR/known}
        - http: {url: "https://x/off", bearer_file: DIR/bearer, ca_file: DIR/http.ca}
        - fence_agent: {command: [sleep, '1'], secrets: {password: DIR/ipmi}, plugs: {n: x}}
`
	keys := map[string]string{
		"zk": "zookeeper.auth.file", "zk.ca": "zookeeper.tls.ca_file", "zk.cert": "zookeeper.tls.cert_file", "zk.key": "zookeeper.tls.key_file",
		"token": "http.token_file", "read": "http.read_token_file", "web.cert": "http.tls.cert_file", "web.key": "http.tls.key_file",
		"agent": "fencing.agent.secret_file",
		"ssh":   "services.a.fencing.methods[0].ssh.key_file", "known": "services.a.fencing.methods[0].ssh.known_hosts",
		"bearer": "services.a.fencing.methods[1].http.bearer_file", "http.ca": "services.a.fencing.methods[1].http.ca_file",
		"ipmi": "services.a.fencing.methods[2].fence_agent.secrets.password",
	}
	files := map[string]string{}
	for name := range keys {
		files[name] = "a secret that nobody guesses, -----BEGIN PRIVATE KEY-----"
	}
	dir := tree(t, files)
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(at("u.yaml"), []byte(strings.ReplaceAll(text, "DIR", dir)), 0o644); err != nil {
		t.Fatal(err)
	}
	for name := range files {
		if err := os.Chmod(at(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dangers := func() (told []string) {
		r := Read(at("u.yaml"), "")
		if r.Err() != nil {
			t.Fatal(r.Err())
		}
		warnings, refused, _ := r.Dangers(time.Minute)
		if len(refused) > 0 {
			t.Errorf("refused: %v", refused)
		}
		for _, w := range warnings {
			told = append(told, w.Key+": "+strings.ReplaceAll(w.Message, dir+"/", ""))
		}
		return told
	}
	if told := dangers(); len(told) > 0 {
		t.Errorf("of files of root's alone: %q", told)
	}
	for name, key := range keys {
		if err := os.Chown(at(name), user, user); err != nil {
			t.Fatal(err)
		}
		if want := []string{key + ": " + name + " belongs to user 4711, who can change it: chown 0 " + name}; !cmp.Equal(dangers(), want) {
			t.Errorf("of a user's: %q, want %q", dangers(), want)
		}
		if err := errors.Join(os.Chown(at(name), 0, user), os.Chmod(at(name), 0o640)); err != nil {
			t.Fatal(err)
		}
		want := []string{key + ": " + name + " belongs to root and group 4711, and its mode 0640 lets others read it: chmod 600 " + name}
		if public := strings.HasSuffix(key, "ca_file") || strings.HasSuffix(key, "cert_file") || name == "known"; public {
			want = nil
		}
		if !cmp.Equal(dangers(), want) {
			t.Errorf("for a user's group: %q, want %q", dangers(), want)
		}
		if err := errors.Join(os.Chown(at(name), 0, 0), os.Chmod(at(name), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// What is written into the config is as secret as the config is. One key of a file is named: the file's mode is what is to be changed.
func TestSecretsInAConfigForAllToReadAreWarnedOf(t *testing.T) {
	const env, http, agent = "env: {", "fencing: {methods: [http: {url: 'https://x/off', headers: {", "fencing: {methods: [fence_agent: {command: [sleep, '1'], plugs: {n: x}, options: {"
	for text, want := range map[string]string{
		env + "DB_PASSWORD: hunter2, MY_SECRET: hunter2}": "services.a.env.DB_PASSWORD",
		env + "TOKEN_FILE: /x, EMPTY_SECRET: ''}":         "",
		http + "X-Api-Key: hunter2}}]}":                   "services.a.fencing.methods[0].http.headers.X-Api-Key",
		agent + "passwd: hunter2}}]}":                     "services.a.fencing.methods[0].fence_agent.options.passwd",
	} {
		dir := tree(t, map[string]string{
			"u.yaml":    "node: n\nzookeeper: {servers: [a], trusted_network: true}\ninclude: [part.yaml]\nservices:\n  b: {command: [sleep, '1']}\n",
			"part.yaml": "services:\n  a:\n    command: [sleep, '1']\n    " + text + "\n",
		})
		part := filepath.Join(dir, "part.yaml")
		for mode, want := range map[os.FileMode]string{0o644: want, 0o600: ""} {
			if err := os.Chmod(part, mode); err != nil {
				t.Fatal(err)
			}
			r := Read(filepath.Join(dir, "u.yaml"), "")
			if r.Err() != nil {
				t.Fatal(r.Err())
			}
			warnings, _, _ := r.Dangers(time.Minute)
			var keys []string
			for _, w := range warnings {
				if strings.Contains(w.String(), "hunter2") || w.File != part || !strings.HasSuffix(w.Message, "chmod 600 "+part) {
					t.Error(w)
				}
				keys = append(keys, w.Key)
			}
			if strings.Join(keys, " ") != want {
				t.Errorf("%s, %04o: %q", text, mode, keys)
			}
		}
	}
}
