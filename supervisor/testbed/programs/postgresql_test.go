package programs

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/watch"
	"understudy/supervisor/testbed/must"
)

// postmasters are the servers of a data directory, without what they forked. What they forked may end meanwhile: each is asked
// for its parent, as the parent's list of children would lack it.
func postmasters(data string) []int {
	all := kit.Processes("postgres", data)
	return slices.DeleteFunc(slices.Clone(all), func(pid int) bool {
		parent, there := kit.Parent(pid)
		return !there || slices.Contains(all, parent)
	})
}

func TestNothingThatPostgreSQLAcknowledgedIsLost(t *testing.T) {
	need.These(t, "pidns")
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if len(found) == 0 {
		found = []string{"postgresql"}
	}
	bin := slices.Max(found)
	s := newSet(t, "postgresql", filepath.Join(bin, "postgres"))
	data, uid, gid := kit.Share(t, "postgres")
	dir := filepath.Dir(data)
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8")
	initdb.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	initdb.Dir = data
	if out, err := initdb.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	add(t, filepath.Join(data, "postgresql.conf"), "\nlisten_addresses = '*'\nunix_socket_directories = '"+data+"'\nshared_buffers = 8MB\nmax_connections = 10\n")
	add(t, filepath.Join(data, "pg_hba.conf"), "\nhost all all 10.0.0.0/8 trust\n")
	// The power switch of a host: it ends what has its data directory open.
	off := filepath.Join(dir, "power-off-host")
	must.OK(t, os.WriteFile(off, []byte(`#!/bin/sh
for p in /proc/[0-9]*; do [ "$(readlink "$p/cwd")" != `+data+` ] || kill -9 "${p##*/}"; done
echo "$UNDERSTUDY_TARGET_NODE" >>`+off+`.log
`), 0o755))
	for _, h := range []*kit.Host{s.a, s.b} {
		// Machines have process ids of their own. Were they shared, the server would mistake a zombie for its previous self.
		s.example(t, h, "postgresql.yaml", "    user: postgres\n", "    user: postgres\n    contain: pidns\n", "/usr/lib/postgresql/15/bin", bin, "/var/lib/postgresql/15/main", data, "/etc/postgresql/15/main", data,
			"/var/run/postgresql", data, "/usr/local/sbin/power-off-host", off)
	}
	failOver(t, s, watch.DialPostgres, ":5432", func() []int { return postmasters(data) })
	// The kernel's shared memory is one: a second server would have found the first one's in use, and said so.
	for _, sup := range s.started {
		if sup.Says("FATAL", "still in use") || sup.Says("FATAL", "already exists") {
			t.Errorf("two at once: %s", sup.Log())
		}
	}
	if text, _ := os.ReadFile(off + ".log"); !slices.Contains(strings.Fields(string(text)), "a") {
		t.Errorf("the host that was cut off has not been fenced; fenced were: %q", text)
	}
}

func add(t *testing.T, file, text string) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	must.OK(t, err)
	_, err = f.WriteString(text)
	must.OK(t, errors.Join(err, f.Close()))
}
