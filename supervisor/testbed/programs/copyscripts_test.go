package programs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"understudy/supervisor/config"
	"understudy/supervisor/testbed/must"
)

// What a client writes in ZooKeeper, and what a server of his answers, reaches these scripts as data: here they run with programs that note
// what they are given. Understudy gives no such address any more, and the scripts do not rely on that.

const rogueAddress = "127.0.0.1,x'\nrestore_command = 'id >F; false'\n#"

var rogueAddresses = []string{rogueAddress, "a b", "a' or 'x' = 'x", `a\`, "$(touch F)", "`touch F`", "-h", "a;touch F", "a\x1b[2J", "a\"b", "a,b", "a=b"}

// rigged runs a script beside programs that note their arguments and input, and answer what answers say.
type rigged struct {
	dir, data string
	env       []string
}

func newRigged(t *testing.T, answers map[string]string) rigged {
	t.Helper()
	dir := t.TempDir()
	r := rigged{dir: dir, data: filepath.Join(dir, "data")}
	bin := filepath.Join(dir, "bin")
	must.OK(t, os.MkdirAll(filepath.Join(r.data, "base"), 0o700))
	must.OK(t, os.Mkdir(bin, 0o700))
	for name, text := range map[string]string{"PG_VERSION": "15\n", "postgresql.auto.conf": "# auto\n"} {
		must.OK(t, os.WriteFile(filepath.Join(r.data, name), []byte(text), 0o600))
	}
	for _, name := range []string{"psql", "pg_isready", "pg_controldata", "pg_rewind", "pg_basebackup", "postgres", "redis-cli", "mariadb", "mariadb-dump", "sleep"} {
		note := `{ printf '%s\1' ` + name + ` "$@"; input=; case ` + name + ` in psql) input=$(cat);; esac; printf '%s\2' "$input"; } >>` + dir + "/notes\n"
		must.OK(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+note+answers[name]+"\n"), 0o700))
	}
	r.env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "PGBIN="+bin, "PGDATA="+r.data, "PGCONFIG=", "UNDERSTUDY_NODE=b", "UNDERSTUDY_ACTIVE_NODE=a", "UNDERSTUDY_ACTIVE_HOST=a")
	return r
}

// run returns what a command printed, its exit code, and what the programs were given meanwhile.
func (r rigged) run(t *testing.T, address string, words ...string) (out string, code int, given [][]string) {
	t.Helper()
	notes := filepath.Join(r.dir, "notes")
	_ = os.Remove(notes)
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir, cmd.Env = r.dir, append(slices.Clone(r.env), "UNDERSTUDY_ACTIVE_ADDRESS="+address)
	said, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(notes) // none ran
	for call := range strings.SplitSeq(strings.TrimSuffix(string(text), "\x02"), "\x02") {
		given = append(given, strings.Split(call, "\x01"))
	}
	return string(said), cmd.ProcessState.ExitCode(), given
}

const (
	postgresScript = "../../../examples/postgresql-copy.sh"

	// A server at another address is the rogue's. It answers with words of SQL where a number is expected.
	hostileSQL   = "1) or pg_read_file('/etc/passwd') is not null --"
	hostilePsql  = `case "$*" in *"-d host="*|*" -h "*) echo "` + hostileSQL + `";; *) echo t;; esac`
	honestPsql   = `case "$input" in *pg_is_in_recovery*) echo f;; *identifier*) echo t;; *) case "$*" in *"-d host="*|*" -h "*) echo 7;; *) echo t;; esac;; esac`
	nobodyListen = "exit 2"
	controldata  = `echo "Latest checkpoint's TimeLineID:       7"`
)

func script(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(postgresScript)
	must.OK(t, err)
	return path
}

func TestNoRogueAddressIsMoreThanAnAddressToPostgreSQLsScript(t *testing.T) {
	for _, address := range rogueAddresses {
		for _, command := range []string{"position", "follow", "prepare", "reclone"} {
			r := newRigged(t, map[string]string{"psql": honestPsql, "pg_isready": nobodyListen, "pg_controldata": controldata})
			_, code, given := r.run(t, address, "sh", script(t), command)
			if code == 0 && command != "position" {
				t.Errorf("%s of %q has succeeded", command, address)
			}
			for _, call := range given {
				if strings.Contains(strings.Join(call, " "), address) {
					t.Errorf("%s of %q ran %q", command, address, call)
				}
			}
			auto, err := os.ReadFile(filepath.Join(r.data, "postgresql.auto.conf"))
			if err != nil || string(auto) != "# auto\n" {
				t.Errorf("%s of %q: postgresql.auto.conf is %q, %v", command, address, auto, err)
			}
			if _, err := os.Stat(filepath.Join(r.dir, "F")); err == nil {
				t.Errorf("%s of %q has run a part of it", command, address)
			}
		}
	}
}

func TestNoAnswerOfARogueServerIsAWordOfSQL(t *testing.T) {
	for _, command := range []string{"position", "follow", "prepare"} {
		r := newRigged(t, map[string]string{"psql": hostilePsql, "pg_isready": nobodyListen, "pg_controldata": controldata, "sleep": ""})
		out, code, given := r.run(t, "10.6.6.6", "sh", script(t), command)
		if want := map[string]int{"position": 0, "follow": 1, "prepare": 75}[command]; code != want || strings.Contains(out, "pg_read_file") || command == "position" && out != "" {
			t.Errorf("%s ended with %d, %q", command, code, out)
		}
		for _, call := range given {
			if strings.Contains(strings.Join(call, " "), "pg_read_file") {
				t.Errorf("%s ran %q", command, call)
			}
		}
	}
}

// A copy is not replaced by that of a follower, or of a server that does not say which it is.
func TestPostgreSQLsScriptClonesAPrimaryAlone(t *testing.T) {
	for recovers, want := range map[string]int{"t": 75, "": 75, "f": 0} {
		r := newRigged(t, map[string]string{"psql": `case "$input" in *identifier*) echo t;; *) echo ` + recovers + `;; esac`, "pg_isready": nobodyListen})
		_, code, given := r.run(t, "10.0.0.2", "sh", script(t), "reclone")
		_, err := os.Stat(filepath.Join(r.data, "PG_VERSION"))
		if code != want || (err == nil) != (want != 0) {
			t.Errorf("recovers: %q: it ended with %d, %v: %q", recovers, code, err, given)
		}
	}
}

// What is emptied has to be filled again: a copy of which a part is elsewhere is left as it is, with the reason.
func TestPostgreSQLsScriptClonesNoCopyOfWhichAPartIsElsewhere(t *testing.T) {
	for _, part := range []string{"pg_wal", "pg_tblspc/16385", ""} {
		r := newRigged(t, map[string]string{"psql": `case "$input" in *identifier*) echo t;; *) echo f;; esac`, "pg_isready": nobodyListen})
		must.OK(t, os.Mkdir(filepath.Join(r.data, "pg_tblspc"), 0o700))
		if part != "" {
			must.OK(t, os.Symlink(t.TempDir(), filepath.Join(r.data, part)))
		}
		out, code, given := r.run(t, "10.0.0.2", "sh", script(t), "reclone")
		_, err := os.Stat(filepath.Join(r.data, "PG_VERSION"))
		if whole := part == ""; whole != (code == 0) || !whole && code != 75 || whole == (err == nil) {
			t.Errorf("%q is elsewhere: it ended with %d, %v, %s: %q", part, code, err, out, given)
		}
	}
}

// A primary that is lost while its data is fetched does not take what the copy had with it.
func TestPostgreSQLsScriptFetchesEverythingBeforeItDeletes(t *testing.T) {
	for fails, want := range map[string]int{"exit 1": 75, "exit 0": 0} {
		fetch := `for last; do [ "$before" != -D ] || into=$last; before=$last; done; echo 16 >"$into/PG_VERSION"; echo new >"$into/new"; ` + fails
		r := newRigged(t, map[string]string{"psql": honestPsql, "pg_isready": nobodyListen, "pg_basebackup": fetch})
		_, code, _ := r.run(t, "10.0.0.2", "sh", script(t), "reclone")
		version, _ := os.ReadFile(filepath.Join(r.data, "PG_VERSION"))
		names, _ := filepath.Glob(filepath.Join(r.data, "*")) // the pattern is constant
		for i := range names {
			names[i] = filepath.Base(names[i])
		}
		has := map[int]string{75: "15 [PG_VERSION base postgresql.auto.conf]", 0: "16 [PG_VERSION from_active new postgresql.auto.conf]"}[want]
		if got := fmt.Sprintln(strings.TrimSpace(string(version)), names); code != want || got != has+"\n" {
			t.Errorf("%s: it ended with %d, and the copy has %s, not %s", fails, code, got, has)
		}
	}
}

// A host may have a cluster of its own, as Debian's package makes one, and there may be something in it.
func TestPostgreSQLsScriptReplacesNoOtherCluster(t *testing.T) {
	for same, want := range map[string]int{"t": 0, "f": 75, "": 75} {
		r := newRigged(t, map[string]string{"psql": `case "$input" in *identifier*) echo "` + same + `";; *) echo f;; esac`, "pg_isready": nobodyListen})
		_, code, given := r.run(t, "10.0.0.2", "sh", script(t), "reclone")
		if _, err := os.Stat(filepath.Join(r.data, "PG_VERSION")); code != want || (err == nil) != (want != 0) {
			t.Errorf("the same: %q: it ended with %d, %v: %q", same, code, err, given)
		}
	}
}

// The primary has to know this copy's password, or show a certificate, before a copy gives its data up for it.
func TestPostgreSQLsScriptAsksForAProofFromThePrimary(t *testing.T) {
	answers := map[string]string{"psql": honestPsql, "pg_isready": nobodyListen, "pg_controldata": controldata}
	for _, proof := range []string{"", "sslmode=verify-full sslrootcert=/ca.pem"} {
		for command, programs := range map[string][]string{"position": {"psql"}, "follow": {"psql"}, "prepare": {"psql", "pg_rewind"}, "reclone": {"psql", "pg_basebackup"}} {
			r := newRigged(t, answers)
			if proof != "" {
				r.env = append(r.env, "PGPROOF="+proof)
			}
			_, code, given := r.run(t, "fd00::1", "sh", script(t), command)
			if code != 0 {
				t.Errorf("%s ended with %d: %q", command, code, given)
			}
			for _, program := range programs {
				if !slices.ContainsFunc(given, func(call []string) bool {
					return call[0] == program && strings.Contains(strings.Join(call, " "), "host='fd00::1'")
				}) {
					t.Errorf("%s asks nothing with %s: %q", command, program, given)
				}
			}
			want := proof
			if want == "" {
				want = "sslmode=require channel_binding=require"
			}
			for _, call := range given {
				words := strings.Join(call, " ")
				if strings.Contains(words, "host=") && !strings.Contains(words, want) || strings.Contains(words, " -h ") {
					t.Errorf("%s asks without a proof: %q", command, call)
				}
			}
		}
	}
}

// pg_rewind runs over data that has gone another way, and over no other: it ends the recovery of a base backup, or of a standby that was killed.
func TestPostgreSQLsScriptRewindsOnlyWhatHasGoneAnotherWay(t *testing.T) {
	state := func(cluster string, timeline int) string {
		return fmt.Sprintf("echo 'Database cluster state:               %s'\necho \"Latest checkpoint's TimeLineID:       %d\"", cluster, timeline)
	}
	for name, c := range map[string]struct {
		label, started, state string
		rewinds               bool
		code                  int
	}{
		"a base backup":               {"START", "", state("in production", 7), false, 0},
		"of an earlier primary":       {"START", "", state("in production", 6), false, 0},
		"another one":                 {"START", "BEFORE", state("in production", 7), false, 0},
		"one that does not start":     {"START", "START", state("in production", 7), false, 1},
		"a standby that was killed":   {"", "START", state("in archive recovery", 7), false, 0},
		"a standby that was stopped":  {"", "", state("shut down in recovery", 7), false, 0},
		"one of an earlier timeline":  {"", "", state("in archive recovery", 6), true, 0},
		"a primary of this timeline":  {"", "", state("in production", 7), true, 0},
		"a primary that was stopped":  {"", "", state("shut down", 6), true, 0},
		"a state that nobody can see": {"", "", "", true, 0},
	} {
		r := newRigged(t, map[string]string{"psql": honestPsql, "pg_isready": nobodyListen, "pg_controldata": c.state})
		for file, text := range map[string]string{"backup_label": c.label, "started_label": c.started} {
			if text != "" {
				must.OK(t, os.WriteFile(filepath.Join(r.data, file), []byte(text), 0o600))
			}
		}
		_, code, given := r.run(t, "10.0.0.2", "sh", script(t), "prepare")
		ran := func(program string) bool {
			return slices.ContainsFunc(given, func(call []string) bool { return call[0] == program })
		}
		auto, err := os.ReadFile(filepath.Join(r.data, "postgresql.auto.conf"))
		must.OK(t, err)
		sets := `primary_conninfo = 'host=''10.0.0.2'' port=''5432'' user=''postgres'' connect_timeout=3 sslmode=require channel_binding=require application_name=''b'''` + "\n"
		if code != c.code || ran("pg_rewind") != c.rewinds || !c.rewinds && ran("postgres") || (code == 0 && !c.rewinds) != strings.HasSuffix(string(auto), sets) {
			t.Errorf("%s: it ended with %d, %q, %s", name, code, given, auto)
		}
	}
}

// replicatedIn is what an example says of its copies. It has to give the addresses of all.
func replicatedIn(t *testing.T, file, service string) *config.Replicated {
	t.Helper()
	read := config.Read(filepath.Join("../../../examples", file), "db-1")
	must.OK(t, read.Err())
	r := read.Config.Services[service].Replicated
	if r.Address == "" || len(r.Others) != 2 {
		t.Errorf("%s gives the addresses %q and %v", file, r.Address, r.Others)
	}
	return r
}

func TestNoRogueAddressIsMoreThanAnAddressToTheExampleOfRedis(t *testing.T) {
	all := replicatedIn(t, "redis-replicated.yaml", "redis")
	info := "printf 'role:slave\\r\\nmaster_host:a\\r\\nmaster_link_status:up\\r\\nslave_repl_offset:12\\r\\n'"
	for _, address := range append(slices.Clone(rogueAddresses), `\141`) { // the last is a to awk
		r := newRigged(t, map[string]string{"redis-cli": `case "$1" in replicaof) echo OK;; info) ` + info + `;; esac`})
		if out, _, _ := r.run(t, address, all.Position...); out != "" {
			t.Errorf("%q follows another one, and its position is %q", address, out)
		}
		_, _, given := r.run(t, address, all.Follow...)
		if want := []string{"redis-cli", "replicaof", address, "6379", ""}; len(given) != 1 || !slices.Equal(given[0], want) {
			t.Errorf("%q: %q", address, given)
		}
		if _, err := os.Stat(filepath.Join(r.dir, "F")); err == nil {
			t.Errorf("%q: a part of it was run", address)
		}
	}
	replicatedIn(t, "postgresql-replicated.yaml", "postgresql")
}

// What would be a part of SQL is no address to the example of MariaDB, and then it does nothing.
func TestNoRogueAddressReachesTheExampleOfMariaDB(t *testing.T) {
	path, err := filepath.Abs("../../../examples/mariadb-copy.sh")
	must.OK(t, err)
	for _, address := range rogueAddresses {
		for _, command := range []string{"position", "follow", "reclone"} {
			r := newRigged(t, nil)
			r.env = append(r.env, "DATADIR="+r.data, "REPLICA_PASSWORD=x", "UNDERSTUDY_ROLE=follower")
			_, code, given := r.run(t, address, "sh", path, command)
			_, err := os.Stat(filepath.Join(r.data, "PG_VERSION"))
			if code != 75 || len(given) > 1 || given[0][0] != "" || err != nil {
				t.Errorf("%s of %q ended with %d, %v: %q", command, address, code, err, given)
			}
		}
	}
	replicatedIn(t, "mariadb-replicated.yaml", "mariadb")
}
