package programs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/watch"
	"understudy/supervisor/testbed/must"
)

const mariaPassword = "long-and-secret"

// maria is a client that writes statements, and reads one column of numbers.
type maria struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func openMaria(addr, user string) (*maria, error) {
	host, port, _ := net.SplitHostPort(addr)
	cmd := exec.Command("mariadb", "--no-defaults", "-h", host, "-P", port, "-u", user, "-NB", "--unbuffered", "--connect-timeout=1")
	cmd.Env = append(os.Environ(), "MYSQL_PWD="+mariaPassword)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	return &maria{cmd, in, bufio.NewScanner(out)}, nil
}

func (m *maria) Close() error {
	_ = m.cmd.Process.Kill()
	return m.cmd.Wait()
}

// ask returns the lines up to the one that it has the server write last.
func (m *maria) ask(statements string, within time.Duration) (lines []string, err error) {
	late := time.AfterFunc(within, func() { _ = m.cmd.Process.Kill() })
	defer late.Stop()
	const last = "over"
	if _, err := io.WriteString(m.in, statements+"; select '"+last+"';\n"); err != nil {
		return nil, err
	}
	for m.out.Scan() {
		if m.out.Text() == last {
			return lines, nil
		}
		lines = append(lines, m.out.Text())
	}
	return nil, errors.Join(m.out.Err(), io.ErrUnexpectedEOF)
}

func (m *maria) Put(n int64) error {
	_, err := m.ask(fmt.Sprintf("insert into shop.numbers (n) values (%d)", n), watch.AnswerWithin)
	return err
}

func (m *maria) All() (all []int64, err error) {
	lines, err := m.ask("select n from shop.numbers order by at", soon)
	for _, line := range lines {
		n, bad := strconv.ParseInt(line, 10, 64)
		all, err = append(all, n), errors.Join(err, bad)
	}
	return all, err
}

// swapMaria counts what is asked: a row that does not change is not sent to the other copies.
func swapMaria(s watch.Store, key int, write int64) (int64, error) {
	lines, err := s.(*maria).ask(fmt.Sprintf("insert into shop.registers (k, v) values (%d, %d) "+
		"on duplicate key update was = v, v = if(values(v) = 0, v, values(v)), asked = asked + 1 returning was",
		key, write), watch.AnswerWithin)
	if err == nil && len(lines) != 1 {
		err = fmt.Errorf("%d rows", len(lines))
	}
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(lines[0], 10, 64)
}

func dialMaria(addr string) (watch.Store, error) { return openMaria(addr, "app") }

func askMaria(addr string) func() bool {
	var m *maria
	return func() bool {
		if m == nil {
			m, _ = openMaria(addr, "app")
		}
		if m == nil {
			return false
		}
		said, err := m.ask("select @@read_only", watch.AnswerWithin/2)
		if err != nil {
			_ = m.Close()
			m = nil
		}
		return slices.Equal(said, []string{"0"})
	}
}

func mariaState(addr, from string) (primary, follows bool, err error) {
	m, err := openMaria(addr, "app")
	if err != nil {
		return false, false, err
	}
	defer m.Close()
	said, err := m.ask("select @@read_only; show slave status", watch.AnswerWithin)
	if len(said) == 0 {
		return false, false, err
	}
	rest := strings.Split(strings.Join(said[1:], "\t"), "\t")
	yes := 0
	for _, field := range rest {
		if field == "Yes" {
			yes++
		}
	}
	return said[0] == "0", len(rest) > 1 && rest[1] == from && yes >= 2, err
}

func promoteMaria(addr string) error {
	m, err := openMaria(addr, "replica")
	if err != nil {
		return err
	}
	defer m.Close()
	_, err = m.ask("set global read_only = 0", watch.AnswerWithin)
	return err
}

func mariaTrio(t *testing.T) *trio {
	need.These(t, "pidns", "mariadbd")
	r := newTrio(t, "mariadb", "mysql", copies{
		port: ":3306", program: "mariadbd", state: mariaState, asker: askMaria, dial: dialMaria, promote: promoteMaria,
		swap: swapMaria,
	}, "mariadb", "mariadb-install-db", "mariadb-dump")
	dir := kit.Open(t, t.TempDir())
	_, uid, gid := kit.Share(t, "mysql")
	own := func(path, text string, mode os.FileMode) string {
		t.Helper()
		must.OK(t, os.WriteFile(path, []byte(text), mode))
		must.OK(t, os.Chown(path, uid, gid))
		return path
	}
	script, err := os.ReadFile("../../../examples/mariadb-copy.sh")
	must.OK(t, err)
	file := own(filepath.Join(dir, "mariadb-copy.sh"), string(script), 0o755)
	conf := own(filepath.Join(dir, "my.cnf"), "[mariadbd]\nbind-address = 0.0.0.0\nskip-name-resolve\ninnodb_buffer_pool_size = 16M\ninnodb_log_file_size = 8M\n", 0o644)
	secret := own(filepath.Join(dir, "mariadb.env"), "REPLICA_PASSWORD="+mariaPassword+"\n", 0o600)
	as := func(input string, words ...string) {
		t.Helper()
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Dir, cmd.Stdin, cmd.SysProcAttr = "/", strings.NewReader(input), &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", words, err, out)
		}
	}
	first := r.dirs[r.hosts[0].Name]
	as("", "mariadb-install-db", "--no-defaults", "--datadir="+first, "--auth-root-authentication-method=socket", "--auth-root-socket-user=mysql", "--skip-test-db")
	as(strings.ReplaceAll("flush privileges; create user replica@'%' identified by '"+mariaPassword+"'; grant all on *.* to replica@'%'; create user app@'%' identified by '"+mariaPassword+"';\n"+
		"create database shop; create table shop.numbers (at bigint auto_increment primary key, n bigint); "+
		"create table shop.registers (k int primary key, v bigint, was bigint default 0, asked bigint default 0); "+
		"grant insert, update, select on shop.* to app@'%'; grant slave monitor on *.* to app@'%';\n", "; ", ";\n"),
		"/usr/sbin/mariadbd", "--defaults-file="+conf, "--bootstrap", "--datadir="+first)
	for _, h := range r.hosts {
		data := r.dirs[h.Name]
		must.OK(t, os.Chown(filepath.Dir(data), uid, gid)) // as /var/lib is not, but the dump needs a place
		if data != first {
			if out, err := exec.Command("cp", "-a", first+"/.", data).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}
		r.copy(t, h, "mariadb-replicated.yaml", "    user: mysql\n", "    user: mysql\n    contain: pidns\n", "/etc/understudy/mariadb-copy.sh", file,
			"/var/lib/mysql", data, "/etc/mysql/my.cnf", conf, "/etc/understudy/mariadb.env", secret)
	}
	return r
}

// P1: at most one copy of MariaDB is promoted, and each commit that was acknowledged is kept through every kind of failover.
func TestNothingThatTwoCopiesOfMariaDBHaveIsLost(t *testing.T) {
	r := mariaTrio(t)
	old, before, p := r.faults(t)
	if now := r.heads(old); len(before) == 0 || !slices.Equal(before, now) {
		t.Errorf("it was demoted, and its server is %v, not %v", now, before)
	}

	p.CutFrom(t, r.Addrs()...)
	r.failed(t, "host cut off from ZooKeeper", p)
	p.Heal(t)
	p = r.primary(t)

	r.byHand(t, r.others(p)[1])
	p = r.primary(t)

	last := r.others(p)[1]
	r.order(t, "reclone", r.service, "--node", last.Name, "--yes")
	if _, follows, err := r.state(last.Addr+r.port, p.Addr); !follows || !r.sups[last.Name].Says(cloned) {
		t.Errorf("%s was to be cloned: it follows %v, %v", last.Name, follows, err)
	}
	r.primary(t)
	r.l.Stop()
	kit.Until(t, soon, "the clone has all writes", func() bool {
		missing, _, _ := r.l.Missing(t, last.Addr+r.port)
		return len(missing) == 0
	})

	r.restart(t, r.hosts, r.hosts)
	p = r.primary(t)
	r.l.Check(t, p.Addr+r.port)
}

// What a copy had received, and so acknowledged, and not applied yet is not lost when it is started again without a primary: MariaDB would
// delete it. Where that cannot be read, what was applied counts.
func TestACopyOfMariaDBKeepsWhatItReceived(t *testing.T) {
	need.These(t, "mariadbd")
	script, err := filepath.Abs("../../../examples/mariadb-copy.sh")
	must.OK(t, err)
	for name, c := range map[string]struct {
		signal syscall.Signal
		spoil  bool
		kept   string
	}{"stopped": {syscall.SIGTERM, false, "3"}, "killed": {syscall.SIGKILL, false, "3"}, "with a relay log that cannot be read": {syscall.SIGTERM, true, "1"}} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin")
			do := func(words ...string) string {
				t.Helper()
				out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
				if err != nil {
					t.Fatalf("%v: %v\n%s", words, err, out)
				}
				return strings.TrimSpace(string(out))
			}
			dirs, addrs := map[string]string{}, map[string]string{"a": "127.33.6.1", "b": "127.33.6.2"}
			order := func(node, active, order string) *exec.Cmd {
				cmd := exec.Command(script, order)
				cmd.Env = append(os.Environ(), "UNDERSTUDY_NODE="+node, "UNDERSTUDY_ROLE=follower", "UNDERSTUDY_ACTIVE_ADDRESS="+active, "DATADIR="+dirs[node]+"/data", "CONFIG="+dirs[node]+"/my.cnf", "REPLICA_PASSWORD="+mariaPassword)
				return cmd
			}
			said := func(node, active, what string) string {
				t.Helper()
				out, err := order(node, active, what).CombinedOutput()
				if err != nil {
					t.Fatalf("%s %s: %v\n%s", node, what, err, out)
				}
				return strings.TrimSpace(string(out))
			}
			ask := func(node, statement string) string {
				t.Helper()
				return do("mariadb", "--no-defaults", "-S", dirs[node]+"/data/mysqld.sock", "-NBe", statement)
			}
			run := func(node string) *exec.Cmd {
				t.Helper()
				cmd := order(node, "", "run")
				must.OK(t, cmd.Start())
				t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
				kit.Until(t, time.Minute, node+" answers", func() bool {
					return exec.Command("mariadb", "--no-defaults", "-S", dirs[node]+"/data/mysqld.sock", "-e", "select 1").Run() == nil
				})
				return cmd
			}
			end := func(cmd *exec.Cmd, with syscall.Signal) {
				t.Helper()
				must.OK(t, cmd.Process.Signal(with))
				_ = cmd.Wait()
			}
			for node, at := range addrs {
				dirs[node] = kit.Open(t, t.TempDir())
				must.OK(t, os.WriteFile(dirs[node]+"/my.cnf", []byte("[mariadbd]\nuser = root\nbind-address = "+at+"\n"), 0o644))
				do("mariadb-install-db", "--no-defaults", "--user=root", "--datadir="+dirs[node]+"/data",
					"--auth-root-authentication-method=socket", "--auth-root-socket-user=root", "--skip-test-db")
			}
			primary, copied := run("a"), run("b")
			ask("a", "set global read_only = 0; create user replica identified by '"+mariaPassword+"'; grant replication slave on *.* to replica; "+
				"create database shop; create table shop.numbers (n int)")
			said("a", "", "promote")
			said("b", addrs["a"], "follow")
			rows := func() string { return ask("b", "select count(*) from shop.numbers") }
			ask("a", "insert into shop.numbers values (1)")
			kit.Until(t, time.Minute, "it is copied", func() bool { return rows() == "1" })
			ask("b", "stop slave sql_thread")
			ask("a", "insert into shop.numbers values (2); insert into shop.numbers values (3)") // as many as are acknowledged
			end(copied, c.signal)
			end(primary, syscall.SIGKILL)
			if logs, err := filepath.Glob(dirs["b"] + "/data/relay.0*"); c.spoil {
				must.OK(t, err)
				for _, log := range logs {
					must.OK(t, os.WriteFile(log, []byte("nothing"), 0o644))
				}
			}
			run("b")
			if position := said("b", "", "position"); rows() != c.kept {
				t.Errorf("at position %s it has %q, not %s rows", position, ask("b", "select n from shop.numbers; select @@gtid_slave_pos, @@gtid_binlog_pos; show slave status"), c.kept)
			}
			said("b", "", "position") // again
		})
	}
}
