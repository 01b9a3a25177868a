package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/must"
)

// A hook of root's that runs a file of another user is refused, whatever runs it. Data of another user is not looked at.
func TestAFileBehindAWrapperIsLookedAt(t *testing.T) {
	need.These(t, "root")
	t.Setenv("SUDO_UID", "")
	dir := tree(t, map[string]string{"theirs/x": "a text that a shell runs\n", "theirs/data": "", "ours/x": ""})
	must.OK(t, os.Chmod(filepath.Join(dir, "ours/x"), 0o755))
	for name, mode := range map[string]os.FileMode{"theirs": 0o755, "theirs/x": 0o755, "theirs/data": 0o644} {
		must.OK(t, errors.Join(os.Chmod(filepath.Join(dir, name), mode), os.Chown(filepath.Join(dir, name), 4711, 4711)))
	}
	for command, refused := range map[string]bool{
		`[THEIRS/x]`:                                   true,
		`[timeout, '5', THEIRS/x]`:                     true,
		`[timeout, -s, KILL, '5', THEIRS/x]`:           true,
		`[timeout, -k5s, '5', THEIRS/x]`:               true,
		`[timeout, -vk, 5s, '5', THEIRS/x]`:            true,
		`[timeout, --signal, KILL, '5', THEIRS/x]`:     true,
		`[timeout, --signal=KILL, '5', THEIRS/x]`:      true,
		`[/usr/bin/env, A=b, C=d, THEIRS/x]`:           true,
		`[env, -i, -u, HOME, A=b, THEIRS/x]`:           true,
		`[env, '-', A=b, THEIRS/x]`:                    true,
		`[env, -S, 'A=b sh THEIRS/x']`:                 true,
		`[nice, -n, '10', THEIRS/x]`:                   true,
		`[nice, -10, nohup, setsid, --, THEIRS/x]`:     true,
		`[ionice, -c, '3', nice, sh, THEIRS/x]`:        true,
		`[flock, -n, /run/x.lock, THEIRS/x]`:           true,
		`[flock, /run/x.lock, -c, 'sh THEIRS/x']`:      true,
		`[sh, -e, THEIRS/x]`:                           true,
		`[sh, -c, '. THEIRS/x']`:                       true,
		`[sh, -ec, 'cd /; . THEIRS/x']`:                true,
		`[bash, -o, pipefail, -c, 'source THEIRS/x']`:  true,
		`[sh, -c, 'A=b timeout 5 THEIRS/x && true']`:   true,
		`[sh, -c, 'if ! THEIRS/x; then exit 1; fi']`:   true,
		`[sh, -c, 'echo "$(THEIRS/x)"']`:               true,
		`[sh, -c, "exec 'THEIRS/x'"]`:                  true,
		`[timeout, '5', sh, -c, "sh -c 'THEIRS/x a'"]`: true,
		`[busybox, sh, -c, THEIRS/x]`:                  true,
		`[sh, -c, '"THEIRS"/x']`:                       true,

		`[sh, x]`:     true,
		`[./x]`:       true,
		`[nice, ./x]`: true,

		`[timeout, '5', OURS/x, THEIRS/data]`:      false,
		`[env, A=THEIRS/x, OURS/x]`:                false,
		`[sh, -c, 'touch THEIRS/data']`:            false,
		`[sh, -c, 'OURS/x <THEIRS/data | cat']`:    false,
		`[sh, -c, 'A=THEIRS/x OURS/x']`:            false,
		`[nice, -n, '10', OURS/x, THEIRS/data]`:    false,
		`[flock, THEIRS/data, OURS/x]`:             false,
		`[timeout]`:                                false,
		`[env, A=b]`:                               false,
		`[sh, -c]`:                                 false,
		`[sh, -c, 'true THEIRS/x; echo THEIRS/x']`: false,
	} {
		file := filepath.Join(dir, "u.yaml")
		text := "node: n\nzookeeper: {servers: [a], trusted_network: true}\nservices:\n  a:\n    command: [sleep, '1']\n" +
			"    working_dir: " + dir + "/theirs\n    hooks: {on_active: " +
			strings.NewReplacer("THEIRS", dir+"/theirs", "OURS", dir+"/ours").Replace(command) + "}\n"
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		r := Read(file, "")
		if r.Err() != nil {
			t.Fatal(command, r.Err())
		}
		_, got, _ := r.Dangers(time.Minute)
		if (len(got) > 0) != refused || refused && !strings.Contains(got[0].Message, "theirs belongs to user 4711") {
			t.Errorf("%s: %v", command, got)
		}
	}
}
