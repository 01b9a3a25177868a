package election

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"understudy/election/jute"
)

// Inquiry asks single servers about themselves. It makes no znode.
type Inquiry struct {
	dial DialFunc
	auth *Auth
}

// Inquire prepares to ask the servers that a session with this config would use.
func Inquire(cfg Config) Inquiry { return Inquiry{cfg.dialing(), cfg.Auth} }

// Visit is a session for asking.
type Visit struct {
	Session  int64
	Password []byte
	Granted  time.Duration
}

// Reasons why a server does not serve a Visit.
var (
	ErrRefusedSession = errors.New("the server refuses the session")
	ErrUnlisted       = errors.New("the word is not in the server's 4lw.commands.whitelist")
)

const unanswered = 2 * time.Second

// Open opens a session on a server, and hangs up: the session lives on.
func (q Inquiry) Open(ctx context.Context, server string, timeout time.Duration) (Visit, error) {
	return q.Resume(ctx, server, Visit{Granted: timeout})
}

// Resume goes on with a session on a server, and hangs up.
func (q Inquiry) Resume(ctx context.Context, server string, v Visit) (Visit, error) {
	return q.visit(ctx, server, v, func(*wire) error { return nil })
}

// Close ends a session.
func (q Inquiry) Close(ctx context.Context, server string, v Visit) error {
	_, err := q.visit(ctx, server, v, func(w *wire) error {
		if _, err := w.Write(jute.Frame(jute.RequestHeader{Xid: 1, Op: jute.OpCloseSession})); err != nil {
			return err
		}
		w.frame = nil
		return w.next()
	})
	return err
}

func (q Inquiry) visit(ctx context.Context, server string, v Visit, use func(*wire) error) (got Visit, err error) {
	ctx, cancel := context.WithTimeout(ctx, unanswered)
	defer cancel()
	conn, err := q.dial(ctx, server)
	if err != nil {
		return v, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err := conn.SetDeadline(time.Now().Add(unanswered - nudged)); err != nil {
		return v, err
	}
	w := &wire{
		Conn: conn, server: server, limit: unanswered, auth: q.auth, seen: new(atomic.Int64), now: func() time.Duration { return 0 },
		greeted: func(h handshake) { got = Visit{h.session, h.password, h.timeout} }, refused: func(error) {},
	}
	hello := jute.ConnectRequest{Timeout: int32(v.Granted.Milliseconds()), SessionID: v.Session, Password: v.Password}
	if hello.Password == nil {
		hello.Password = make([]byte, 16)
	}
	if _, err := w.Write(jute.Frame(hello)); err != nil {
		return v, err
	}
	if err := w.next(); err != nil {
		return v, err
	}
	if got.Session == 0 {
		return v, ErrRefusedSession
	}
	return got, use(w)
}

// Word asks a server one of ZooKeeper's four-letter words.
func (q Inquiry) Word(ctx context.Context, server, word string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, unanswered)
	defer cancel()
	conn, err := q.dial(ctx, server)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(conn, 1<<20))
	switch {
	case err != nil:
		return "", err
	case len(text) == 0 || string(text) == fmt.Sprintf("%s is not executed because it is not in the whitelist.\n", word):
		return "", ErrUnlisted
	}
	return string(text), nil
}
