package programs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"understudy/election"
	"understudy/packaging/need"
	"understudy/supervisor/testbed/keytest"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/watch"
	"understudy/supervisor/testbed/must"
)

// walOf is how far a copy's data goes; 0: it does not answer.
func walOf(addr string) int64 {
	p, err := watch.OpenPostgres(addr, 200*time.Millisecond)
	if err != nil {
		return 0
	}
	defer p.Close()
	said, err := p.Query("SELECT pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) " +
		"ELSE pg_current_wal_flush_lsn() END, '0/0')::bigint")
	if err != nil || len(said) != 1 {
		return 0
	}
	return said[0]
}

func swapPostgres(s watch.Store, key int, write int64) (int64, error) {
	said, err := s.(*watch.Postgres).Query("CREATE TABLE IF NOT EXISTS registers (k int PRIMARY KEY, v bigint, was bigint DEFAULT 0); " +
		fmt.Sprintf("INSERT INTO registers VALUES (%d, %d) ON CONFLICT (k) DO UPDATE SET was = registers.v, ", key, write) +
		"v = coalesce(nullif(excluded.v, 0), registers.v) RETURNING was")
	if err == nil && len(said) != 1 {
		err = fmt.Errorf("%d rows", len(said))
	}
	if err != nil {
		return 0, err
	}
	return said[0], nil
}

func postgresTrio(t *testing.T, swaps ...string) *trio {
	need.These(t, "pidns")
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if len(found) == 0 {
		found = []string{"postgresql"}
	}
	bin := slices.Max(found)
	r := newTrio(t, "postgresql", "postgres", copies{
		port: ":5432", program: "postgres", state: watch.PostgresState, asker: watch.AskPostgres, dial: watch.DialPostgres, promote: watch.PromotePostgres,
		swap: swapPostgres,
	}, filepath.Join(bin, "pg_rewind"))
	dir := kit.Open(t, t.TempDir())
	script, err := os.ReadFile("../../../examples/postgresql-copy.sh")
	must.OK(t, err)
	copies := filepath.Join(dir, "postgresql-copy.sh")
	must.OK(t, os.WriteFile(copies, script, 0o755))
	_, uid, gid := kit.Share(t, "postgres")
	as := func(words ...string) {
		t.Helper()
		cmd := exec.Command(filepath.Join(bin, words[0]), words[1:]...)
		cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", words, err, out)
		}
	}
	first := r.dirs[r.hosts[0].Name]
	keys := keytest.New(t)
	keys.Sign(t, "server", nil)
	own := func(path, text string) string {
		t.Helper()
		must.OK(t, os.WriteFile(path, []byte(text), 0o600))
		must.OK(t, os.Chown(path, uid, gid))
		return path
	}
	const password = "long and secret"
	as("initdb", "-D", first, "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8", "--pwfile="+own(filepath.Join(dir, "password"), password+"\n"))
	passfile := own(filepath.Join(dir, "passfile"), "*:5432:*:postgres:"+password+"\n")
	for _, name := range []string{"server", "server-key"} {
		text, err := os.ReadFile(keys.File(name))
		must.OK(t, err)
		own(filepath.Join(first, name), string(text))
	}
	conf := []string{
		"listen_addresses = '*'", "unix_socket_directories = '..'", "shared_buffers = 8MB", "hot_standby = on", "wal_log_hints = on",
		"wal_keep_size = 256MB", "wal_retrieve_retry_interval = 1s",
		"ssl = on", "ssl_cert_file = 'server'", "ssl_key_file = 'server-key'", "",
	}
	add(t, filepath.Join(first, "postgresql.conf"), "\n"+strings.Join(conf, "\n"))
	add(t, filepath.Join(first, "pg_hba.conf"), "\nhostssl all,replication all 10.0.0.0/8 scram-sha-256\nhostnossl all all 10.0.0.0/8 trust\n") // who writes here knows no TLS
	for _, h := range r.hosts {
		data := r.dirs[h.Name]
		must.OK(t, os.Chown(filepath.Dir(data), uid, gid)) // as /var/lib/postgresql/15 is the user's
		if data != first {
			if out, err := exec.Command("cp", "-a", first+"/.", data).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}
		r.copy(t, h, "postgresql-replicated.yaml", append(slices.Clone(swaps), "    user: postgres\n", "    user: postgres\n    contain: pidns\n", "/etc/understudy/postgresql-copy.sh", copies,
			"/usr/lib/postgresql/15/bin", bin, "/var/lib/postgresql/15/main", data, "/etc/postgresql/15/main", data, "/var/run/postgresql", filepath.Dir(data),
			"/var/lib/postgresql/.pgpass", passfile)...)
	}
	return r
}

const cloned = "cloning this node's copy from the primary"

// P1: at most one copy of PostgreSQL is promoted, and each commit that was acknowledged is kept through every kind of failover.
func TestNothingThatTwoCopiesOfPostgreSQLHaveIsLost(t *testing.T) {
	r := postgresTrio(t)
	_, _, p := r.faults(t)

	p.CutFrom(t, r.Addrs()...)
	r.failed(t, "host cut off from ZooKeeper", p)
	p.Heal(t)
	p = r.primary(t)

	r.byHand(t, r.others(p)[0])
	p = r.primary(t)

	// It has committed what nobody else has, and could acknowledge it to nobody: it is cut off from the others, and goes, and comes back.
	ahead, others := p, r.others(p)
	ahead.CutFrom(t, others[0].Addr, others[1].Addr)
	var alone *watch.Postgres
	kit.Until(t, soon, "it answers", func() bool {
		var err error
		alone, err = watch.OpenPostgres(ahead.Addr+r.port, watch.AnswerWithin)
		return err == nil
	})
	t.Cleanup(func() { alone.Close() })
	go func() { _, _ = alone.Query("CREATE TABLE more (n int)") }() // which waits for another copy
	kit.Until(t, soon, "it has more than the others", func() bool {
		return !slices.ContainsFunc(others, func(h *kit.Host) bool {
			there := walOf(h.Addr + r.port)
			return there == 0 || there >= walOf(ahead.Addr+r.port)
		})
	})
	r.sups[ahead.Name].Kill9()
	r.failed(t, "primary ahead of the others", ahead)
	ahead.Heal(t)
	r.up(t, ahead)
	p = r.primary(t)
	if !r.sups[ahead.Name].Says("pg_rewind", "rewinding from last common checkpoint") {
		t.Error("it was not rewound")
	}
	for _, h := range r.hosts {
		if r.sups[h.Name].Says(cloned) {
			t.Errorf("%s was cloned: it can be rewound", h.Name)
		}
	}
	r.l.Check(t, p.Addr+r.port)

	// A copy that has lost a part of its data cannot be rewound, and is made anew.
	lost := r.others(p)[0]
	r.sups[lost.Name].Stop(t)
	must.OK(t, os.RemoveAll(filepath.Join(r.dirs[lost.Name], "global")))
	must.OK(t, os.Remove(filepath.Join(r.dirs[lost.Name], "PG_VERSION")))
	r.up(t, lost)
	r.primary(t)
	if !r.sups[lost.Name].Says(cloned) {
		t.Error("it was not cloned")
	}

	r.l.Stop()
	r.restart(t, r.hosts, r.hosts)
	p = r.primary(t)
	r.l.Check(t, p.Addr+r.port)
}

// A host joins as the documents say: a base backup of the primary, and its supervisor.
func TestABaseBackupJoinsTheCopiesOfPostgreSQL(t *testing.T) {
	r := postgresTrio(t)
	p := r.begin(t)
	for _, h := range r.others(p) {
		r.sups[h.Name].Stop(t)
		data := r.dirs[h.Name]
		files, err := filepath.Glob(filepath.Join(r.kept, "*.copy"))
		must.OK(t, err)
		for _, file := range files {
			if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), `"node":"`+h.Name+`"`) {
				must.OK(t, os.Remove(file))
			}
		}
		found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pg_basebackup")
		script := "rm -rf " + data + "/* && exec setpriv --reuid=postgres --regid=postgres --init-groups " + slices.Max(found) +
			" -D " + data + " -d 'host=" + p.Addr + " user=postgres sslmode=require' -X stream -c fast"
		cmd := h.Command("sh", "-c", script)
		cmd.Env = append(os.Environ(), "PGPASSWORD=long and secret", "HOME=/")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		r.up(t, h)
		r.primary(t)
		if r.sups[h.Name].Says(cloned) || r.sups[h.Name].Says("pg_rewind") {
			t.Errorf("the base backup of %s was changed or replaced", h.Name)
		}
	}
	last := r.others(p)[1]
	r.order(t, "reclone", r.service, "--node", last.Name, "--yes")
	if _, follows, err := r.state(last.Addr+r.port, p.Addr); !follows || !r.sups[last.Name].Says(cloned) {
		t.Errorf("%s was to be cloned: it follows %v, %v", last.Name, follows, err)
	}
	now := r.primary(t)
	r.l.Check(t, now.Addr+r.port)
}

// After two losses in a row the copy that is left is promoted, and has every acknowledged commit: the first one leaves the live set.
func TestTheCopyOfPostgreSQLThatIsLeftIsPromoted(t *testing.T) {
	r := postgresTrio(t)
	p := r.begin(t)
	left, lost := r.others(p)[0], r.others(p)[1]
	live := func(want ...*kit.Host) {
		t.Helper()
		var now election.Promotion
		if !kit.Reached(2*soon, func() bool {
			data, _, _ := r.Conn().Get(r.Path("services", r.service, "copies"))
			now, _ = election.ReadPromotion(data)
			return len(now.Live) == len(want) && !slices.ContainsFunc(want, func(h *kit.Host) bool { return !slices.Contains(now.Live, h.Name) })
		}) {
			t.Fatalf("the live set is %v", now.Live)
		}
	}
	live(p, left, lost)
	r.sups[lost.Name].Kill9()
	live(p, left)
	from := r.l.Sent()
	kit.Until(t, soon, "the copy that is left acknowledges", func() bool { _, ok := r.l.AckedBy(from); return ok })
	r.sups[p.Name].Kill9()
	kit.Until(t, 2*soon, "the last copy is promoted", func() bool { primary, _, err := r.state(left.Addr+r.port, ""); return primary && err == nil })
	r.l.Check(t, left.Addr+r.port)
	waits := func() bool {
		return strings.Contains(left.Ask(t, "status", r.service, "--zk", strings.Join(r.Servers, ","), "--root", r.root).Out, "Writes to "+left.Name+" wait until")
	}
	kit.Until(t, soon, "status says that writes wait", waits)
	from = r.l.Sent()
	r.up(t, lost)
	kit.Until(t, 2*soon, "a copy acknowledges again", func() bool { by, ok := r.l.AckedBy(from); return ok && by == left.Addr+r.port })
	live(left, lost)
	kit.Until(t, soon, "status says no more that writes wait", func() bool { return !waits() })
	r.l.Check(t, left.Addr+r.port)
}

// A copy is made of an older backup, and gets from an archive what the primary has no more.
func TestACopyOfPostgreSQLIsMadeOfABackup(t *testing.T) {
	kept, uid, gid := kit.Share(t, "postgres")
	archive, backup := filepath.Join(kept, "archive"), filepath.Join(kept, "backup")
	must.OK(t, os.Mkdir(archive, 0o755))
	must.OK(t, os.Chown(archive, uid, gid))
	clone := filepath.Join(kept, "clone")
	must.OK(t, os.WriteFile(clone, []byte("#!/bin/sh\ncp -a "+backup+"/. \"$1\" && echo the backup is here\n"), 0o755))
	r := postgresTrio(t, "      LANG: C.UTF-8\n", "      LANG: C.UTF-8\n      PGCLONE: "+clone+"\n      PGRESTORE: cp "+archive+"/%f %p\n")
	for _, h := range r.hosts {
		add(t, filepath.Join(r.dirs[h.Name], "postgresql.conf"), "wal_keep_size = 0\nmin_wal_size = 32MB\narchive_mode = on\n"+
			"archive_command = 'cp %p "+archive+"/%f.new && mv "+archive+"/%f.new "+archive+"/%f'\n")
	}
	p := r.begin(t)
	on, err := watch.OpenPostgres(p.Addr+r.port, watch.AnswerWithin)
	must.OK(t, err)
	t.Cleanup(func() { on.Close() })
	ask := func(query string) {
		t.Helper()
		_, err := on.Query(query)
		must.OK(t, err)
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pg_basebackup")
	cmd := p.Command("setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", slices.Max(found), "-D", backup, "-h", filepath.Dir(r.dirs[p.Name]), "-c", "fast")
	cmd.Env = append(os.Environ(), "HOME=/")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	lost := r.others(p)[0]
	r.sups[lost.Name].Stop(t)
	must.OK(t, os.RemoveAll(filepath.Join(r.dirs[lost.Name], "global")))
	must.OK(t, os.Remove(filepath.Join(r.dirs[lost.Name], "PG_VERSION")))
	ask("CREATE TABLE before (n int); SELECT count(pg_switch_wal())")
	oldest := func() string {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(r.dirs[p.Name], "pg_wal", "0*[0-9A-F]"))
		must.OK(t, err)
		return slices.Min(files)
	}
	first := oldest()
	kit.Until(t, 2*soon, "the primary drops what it has archived", func() bool {
		ask("CREATE TABLE more (n int); DROP TABLE more; SELECT count(pg_switch_wal())")
		ask("CHECKPOINT")
		return oldest() > first
	})
	r.up(t, lost)
	r.primary(t)
	if !r.sups[lost.Name].Says(cloned) || !r.sups[lost.Name].Says("the backup is here") || !r.sups[lost.Name].Says("restored log file") {
		t.Error("it was not made of the backup and the archive")
	}
	r.handOver(t, p, lost)
}

// A commit that is acknowledged is on another copy, also while a backup tool takes the log as copies do.
func TestABackupToolIsNoCopyOfPostgreSQL(t *testing.T) {
	r := postgresTrio(t)
	p := r.begin(t)
	dir, _, _ := kit.Share(t, "postgres")
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pg_receivewal")
	tool := p.Command(slices.Max(found), "--synchronous", "--no-loop", "-D", dir, "-d", "host="+p.Addr+" user=postgres sslmode=require")
	tool.Env = append(os.Environ(), "PGPASSWORD=long and secret", "HOME=/")
	must.OK(t, tool.Start())
	t.Cleanup(func() {
		_ = tool.Process.Kill()
		_ = tool.Wait()
	})
	ask := func(query string) bool {
		conn, err := watch.OpenPostgres(p.Addr+r.port, watch.AnswerWithin)
		if err != nil {
			return false
		}
		defer conn.Close()
		said, err := conn.Query(query)
		return err == nil && len(said) == 1 && said[0] == 1
	}
	const tools = "SELECT count(*) FROM pg_stat_replication WHERE application_name = 'pg_receivewal'"
	kit.Until(t, soon, "the tool takes the log", func() bool { return ask(tools) })
	others := r.others(p)
	for _, h := range others {
		r.sups[h.Name].Stop(t)
	}
	from := r.l.Sent()
	kit.Until(t, 2*soon, "the tool alone has a later commit", func() bool {
		return r.l.Sent() > from+1 && ask(tools+" AND flush_lsn >= pg_current_wal_flush_lsn() AND (SELECT count(*) FROM pg_stat_replication) = 1")
	})
	r.sups[p.Name].Kill9()
	for _, h := range others {
		r.up(t, h)
	}
	r.failed(t, "the primary is gone, and the tool has what it wrote last", p)
}
