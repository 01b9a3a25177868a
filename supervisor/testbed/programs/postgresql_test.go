package programs

import (
	"bufio"
	"encoding/binary"
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
)

// postgres is a connection that speaks PostgreSQL's protocol, as far as one column of numbers takes it.
type postgres struct {
	net.Conn
	replies *bufio.Reader
}

func dialPostgres(addr string) (store, error) {
	p, err := openPostgres(addr, answerWithin)
	if err != nil {
		return nil, err
	}
	if _, err = p.query("CREATE TABLE IF NOT EXISTS numbers (at serial, n bigint)"); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// openPostgres connects, and asks for nothing yet.
func openPostgres(addr string, within time.Duration) (*postgres, error) {
	conn, err := net.DialTimeout("tcp", addr, within)
	if err != nil {
		return nil, err
	}
	p := &postgres{conn, bufio.NewReader(conn)}
	const version3 = 3 << 16
	if _, err = p.ask(0, binary.BigEndian.AppendUint32(nil, version3), []byte("user\x00postgres\x00\x00")); err != nil {
		conn.Close()
		return nil, err
	}
	return p, nil
}

func (p *postgres) close() { p.Close() }

func (p *postgres) write(n int64) error {
	_, err := p.query(fmt.Sprintf("INSERT INTO numbers (n) VALUES (%d)", n))
	return err
}

func (p *postgres) all() ([]int64, error) {
	var all []int64
	last, err := p.query("SELECT coalesce(max(at), 0) FROM numbers")
	if err != nil {
		return nil, err
	}
	for from := int64(0); from < last[0]; from += atOnce {
		some, err := p.query(fmt.Sprintf("SELECT n FROM numbers WHERE at > %d AND at <= %d ORDER BY at", from, from+atOnce))
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

func (p *postgres) query(text string) ([]int64, error) { return p.ask('Q', []byte(text+"\x00")) }

// ask sends a message and reads until the server is ready for the next.
func (p *postgres) ask(kind byte, parts ...[]byte) (numbers []int64, err error) {
	_ = p.SetDeadline(time.Now().Add(answerWithin))
	body := slices.Concat(parts...)
	message := append(binary.BigEndian.AppendUint32(nil, uint32(4+len(body))), body...)
	if kind != 0 {
		message = append([]byte{kind}, message...)
	}
	if _, err := p.Write(message); err != nil {
		return nil, err
	}
	for {
		var head [5]byte
		if _, err := io.ReadFull(p.replies, head[:]); err != nil {
			return nil, err
		}
		body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
		if _, err := io.ReadFull(p.replies, body); err != nil {
			return nil, err
		}
		switch head[0] {
		case 'E':
			return nil, errors.New("postgres says " + strings.ReplaceAll(string(body), "\x00", " "))
		case 'D': // how many columns, then each with its length
			n, err := strconv.ParseInt(string(body[6:]), 10, 64)
			if err != nil {
				return nil, err
			}
			numbers = append(numbers, n)
		case 'Z':
			return numbers, nil
		}
	}
}

// postmasters are the servers of a data directory, without what they forked. What they forked may end meanwhile: each is asked
// for its parent, as the parent's list of children would lack it.
func postmasters(data string) []int {
	all := processes("postgres", data)
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
	data, uid, gid := shareOf(t, "postgres")
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
	must(t, os.WriteFile(off, []byte(`#!/bin/sh
for p in /proc/[0-9]*; do [ "$(readlink "$p/cwd")" != `+data+` ] || kill -9 "${p##*/}"; done
echo "$UNDERSTUDY_TARGET_NODE" >>`+off+`.log
`), 0o755))
	for _, h := range []*kit.Host{s.a, s.b} {
		// Machines have process ids of their own. Were they shared, the server would mistake a zombie for its former self.
		s.example(t, h, "postgresql.yaml", "    user: postgres\n", "    user: postgres\n    contain: pidns\n", "/usr/lib/postgresql/15/bin", bin, "/var/lib/postgresql/15/main", data, "/etc/postgresql/15/main", data,
			"/var/run/postgresql", data, "/usr/local/sbin/power-off-host", off)
	}
	failOver(t, s, dialPostgres, ":5432", func() []int { return postmasters(data) })
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
	must(t, err)
	_, err = f.WriteString(text)
	must(t, errors.Join(err, f.Close()))
}
