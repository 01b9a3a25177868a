package watch

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Postgres is a connection that speaks PostgreSQL's protocol, as far as one column of numbers takes it.
type Postgres struct {
	net.Conn
	replies *bufio.Reader
}

// DialPostgres is for a client that keeps its numbers in a table.
func DialPostgres(addr string) (Store, error) {
	p, err := OpenPostgres(addr, AnswerWithin)
	if err != nil {
		return nil, err
	}
	if _, err = p.Query("CREATE TABLE IF NOT EXISTS numbers (at serial, n bigint)"); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// OpenPostgres connects, and asks for nothing yet.
func OpenPostgres(addr string, within time.Duration) (*Postgres, error) {
	conn, err := net.DialTimeout("tcp", addr, within)
	if err != nil {
		return nil, err
	}
	p := &Postgres{conn, bufio.NewReader(conn)}
	const version3 = 3 << 16
	if _, err = p.ask(0, binary.BigEndian.AppendUint32(nil, version3), []byte("user\x00postgres\x00\x00")); err != nil {
		conn.Close()
		return nil, err
	}
	return p, nil
}

// Put commits a number.
func (p *Postgres) Put(n int64) error {
	_, err := p.Query(fmt.Sprintf("INSERT INTO numbers (n) VALUES (%d)", n))
	return err
}

// All reads the table.
func (p *Postgres) All() ([]int64, error) {
	var all []int64
	last, err := p.Query("SELECT coalesce(max(at), 0) FROM numbers")
	if err != nil {
		return nil, err
	}
	for from := int64(0); from < last[0]; from += atOnce {
		some, err := p.Query(fmt.Sprintf("SELECT n FROM numbers WHERE at > %d AND at <= %d ORDER BY at", from, from+atOnce))
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// Query returns the numbers of one column.
func (p *Postgres) Query(text string) ([]int64, error) { return p.ask('Q', []byte(text+"\x00")) }

// ask sends a message and reads until the server is ready for the next.
func (p *Postgres) ask(kind byte, parts ...[]byte) (numbers []int64, err error) {
	_ = p.SetDeadline(time.Now().Add(AnswerWithin))
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

const isPrimary = "SELECT (NOT pg_is_in_recovery())::int"

// PostgresState asks one copy.
func PostgresState(addr, from string) (primary, follows bool, err error) {
	p, err := OpenPostgres(addr, 200*time.Millisecond)
	if err != nil {
		return false, false, err
	}
	defer p.Close()
	said, err := p.Query(isPrimary)
	if err != nil {
		return false, false, err
	}
	streams, err := p.Query(fmt.Sprintf("SELECT count(*) FROM pg_stat_wal_receiver WHERE status = 'streaming' AND sender_host = '%s'", from))
	return slices.Equal(said, []int64{1}), slices.Equal(streams, []int64{1}), err
}

// AskPostgres keeps a connection over which it asks whether a copy is the primary.
func AskPostgres(addr string) func() bool {
	var p *Postgres
	return func() bool {
		if p == nil {
			p, _ = OpenPostgres(addr, 200*time.Millisecond)
		}
		if p == nil {
			return false
		}
		said, err := p.Query(isPrimary)
		if err != nil {
			p.Close()
			p = nil
		}
		return slices.Equal(said, []int64{1})
	}
}

// PromotePostgres is what an operator does by hand.
func PromotePostgres(addr string) error {
	p, err := OpenPostgres(addr, AnswerWithin)
	if err != nil {
		return err
	}
	defer p.Close()
	_, err = p.Query("SELECT pg_promote(false)::int")
	return err
}
