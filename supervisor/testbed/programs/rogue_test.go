package programs

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/keytest"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// A server that lets everybody in, and that does not know the password, is no primary to a copy, whatever is in ZooKeeper.
func TestACopyOfPostgreSQLKeepsItsDataFromAServerThatDoesNotKnowThePassword(t *testing.T) {
	need.These(t, "programs", "root")
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if len(found) == 0 {
		t.Fatal("postgresql is missing: make test-all installs it")
	}
	bin := slices.Max(found)
	server, uid, gid := kit.Share(t, "postgres")
	follower, _, _ := kit.Share(t, "postgres")
	for _, dir := range []string{server, follower} {
		must.OK(t, os.Chown(filepath.Dir(dir), uid, gid))
	}
	as := func(env []string, words ...string) (string, int) {
		t.Helper()
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		cmd.Env = append(os.Environ(), env...)
		out, _ := cmd.CombinedOutput()
		return string(out), cmd.ProcessState.ExitCode()
	}
	ok := func(words ...string) {
		t.Helper()
		if out, code := as(nil, words...); code != 0 {
			t.Fatalf("%q: %d: %s", words, code, out)
		}
	}
	file := func(name, text string) string {
		t.Helper()
		path := filepath.Join(filepath.Dir(server), name)
		must.OK(t, os.WriteFile(path, []byte(text), 0o600))
		must.OK(t, os.Chown(path, uid, gid))
		return path
	}
	keys := keytest.New(t)
	keys.Sign(t, "server", nil)
	for _, name := range []string{"server", "server-key"} {
		text, err := os.ReadFile(keys.File(name))
		must.OK(t, err)
		file(name, string(text))
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	port := fmt.Sprint(listener.Addr().(*net.TCPAddr).Port)
	must.OK(t, listener.Close())
	ok(filepath.Join(bin, "initdb"), "-D", server, "--auth=trust", "--no-sync", "--pwfile="+file("password", "long and secret\n"))
	ok("cp", "-aT", server, follower) // data of another cluster would be kept anyway
	add(t, filepath.Join(server, "postgresql.conf"), strings.Join([]string{
		"", "listen_addresses = '127.0.0.1'", "port = " + port, "unix_socket_directories = ''", "ssl = on",
		"ssl_cert_file = '" + filepath.Join(filepath.Dir(server), "server") + "'", "ssl_key_file = '" + filepath.Join(filepath.Dir(server), "server-key") + "'", "",
	}, "\n"))
	path, err := os.ReadFile(postgresScript)
	must.OK(t, err)
	copies := filepath.Join(kit.Open(t, t.TempDir()), "postgresql-copy.sh")
	must.OK(t, os.WriteFile(copies, path, 0o755))
	env := []string{
		"HOME=/", "PGBIN=" + bin, "PGDATA=" + follower, "PGCONFIG=", "PGHOST=" + filepath.Dir(follower), "PGPORT=" + port, "UNDERSTUDY_ACTIVE_ADDRESS=127.0.0.1",
		"PGPASSFILE=" + file("passfile", "*:*:*:postgres:long and secret\n"),
	}
	marker := filepath.Join(follower, "ours")
	must.OK(t, os.WriteFile(marker, nil, 0o600))
	ctl := func(what string) {
		t.Helper()
		ok(filepath.Join(bin, "pg_ctl"), "-D", server, "-l", filepath.Join(filepath.Dir(server), "log"), "-w", what)
	}
	ctl("start")
	t.Cleanup(func() { ctl("stop") })
	for _, command := range []string{"reclone", "prepare"} {
		out, code := as(env, copies, command)
		if _, err := os.Stat(marker); err != nil || code != 75 || !strings.Contains(out, "channel binding") {
			t.Errorf("%s ended with %d, %v:\n%s", command, code, err, out)
		}
	}
	must.OK(t, os.WriteFile(filepath.Join(server, "pg_hba.conf"), []byte("hostssl all,replication all 127.0.0.1/32 scram-sha-256\n"), 0o600))
	ctl("restart")
	if out, code := as(env, copies, "reclone"); code != 0 {
		t.Fatalf("reclone ended with %d:\n%s", code, out)
	}
	auto, err := os.ReadFile(filepath.Join(follower, "postgresql.auto.conf"))
	must.OK(t, err)
	if _, err := os.Stat(marker); err == nil || !strings.Contains(string(auto), "channel_binding=require") || strings.Contains(string(auto), "secret") {
		t.Errorf("cloned: %v\n%s", err, auto)
	}
}
