package election

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"understudy/supervisor/printable"
)

// NoZooKeeper says that a server answers, and speaks another protocol.
type NoZooKeeper struct {
	Server string
	Sent   string // the beginning of what it said
}

func (e *NoZooKeeper) Error() string {
	if strings.HasPrefix(e.Sent, "\x15\x03") { // a TLS alert
		return e.Server + " speaks TLS: is this the secure port? set zookeeper.tls"
	}
	return fmt.Sprintf("%s answers, and is no ZooKeeper (it sent %q)", e.Server, printable.Text(opening(e.Sent)))
}

// opening is the first two words of what was said, which name most protocols.
func opening(sent string) string {
	const longest = 40
	words := strings.Fields(strings.ToValidUTF8(sent, "?"))
	text := strings.Join(words[:min(len(words), 2)], " ")
	return text[:min(len(text), longest)]
}

// maxGreeting is more than a ZooKeeper server's first frame ever is.
const maxGreeting = 1 << 10

// nudged is how long a server that has said nothing may take to answer an empty line.
const nudged = 250 * time.Millisecond

// noGreeting explains why a connection does not begin as ZooKeeper's do, from what was heard in place of the greeting.
func (w *wire) noGreeting(heard []byte, err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) && len(heard) == 0 && w.before == 0 && w.resume == nil { // no lease waits for this connection
		heard = w.nudge()
	}
	switch {
	case len(heard) > 0:
		_ = w.Conn.SetReadDeadline(time.Now().Add(nudged))
		rest := make([]byte, 64)
		n, _ := w.in.Read(rest)
		return &NoZooKeeper{Server: w.server, Sent: string(heard) + string(rest[:n])}
	case errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET):
		return fmt.Errorf("%s hung up without an answer: a server without a quorum does, "+
			"or one that has maxClientCnxns connections from here, or a secure port (zookeeper.tls)", w.server)
	}
	return err
}

// nudge ends the line for servers whose protocol has lines: a web server waits for that.
func (w *wire) nudge() []byte {
	_ = w.Conn.SetDeadline(time.Now().Add(nudged))
	head := make([]byte, 4)
	if _, err := io.WriteString(w.Conn, "\r\n\r\n"); err != nil {
		return nil
	}
	n, _ := io.ReadFull(w.in, head)
	return head[:n]
}

// noTLS explains why a server does not answer as one that speaks TLS.
func noTLS(address string, err error) error {
	_, other := errors.AsType[tls.RecordHeaderError](err)
	if other || errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("TLS with %s: %w (is this the secure port?)", address, plainly(err))
	}
	return fmt.Errorf("TLS with %s: %w", address, err)
}

// plainly puts into words what no TLS is.
func plainly(err error) error {
	if record, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return fmt.Errorf("it sent %q", printable.Text(opening(string(record.RecordHeader[:]))))
	}
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		return errors.New("it hung up")
	}
	return err
}
