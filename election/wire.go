package election

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"understudy/election/jute"
)

const (
	maxFrame = 4 << 20
	xidAuth  = -4
)

var errAuthRefused = errors.New("the server refused our credentials")

// handshake is a server's answer to a connect request.
type handshake struct {
	server   string
	sent     time.Duration // when the connect request was
	timeout  time.Duration
	session  int64
	password []byte
}

// wire is one connection to a server. It hands whole frames to the client, which lets it see the handshake (the client
// keeps the password to itself), authenticate by itself (the client can deadlock when it re-sends credentials), bound
// every wait (the client would give a frozen server 6.7 session timeouts for the handshake), and keep count of the zxid:
// after a reconnect the client may tell the server, by a race, of a zxid that it has seen only just now, and so miss events of its
// watches. So wire shows the client no zxid, and corrects its requests on the way.
type wire struct {
	net.Conn
	server  string
	limit   time.Duration // the longest silence
	patient bool          // there is none once the server has let us in
	auth    *Auth
	seen    *atomic.Int64 // the newest zxid of the session
	before  int64         // the newest when the connection was made: watches are put back as of then
	now     func() time.Duration
	greeted func(handshake)
	refused func(error)
	resume  *handshake // the session to be taken over where the client asks for a new one

	in     *bufio.Reader
	frame  []byte      // what the client has not read yet
	ready  bool        // the handshake is over
	stands atomic.Bool // and it is not closed
	said   bool        // the connect request is out
	sent   time.Duration
}

// Write sends what the client writes: one whole frame. It never fails: the client answers a request that could not be
// written twice, and three times, which blocks its loop for ever, when it is closed meanwhile. It learns of the failure by its
// next read.
func (w *wire) Write(p []byte) (int, error) {
	const (
		connectZxid = 4 + 4     // after length and protocol version
		watchesZxid = 4 + 4 + 4 // after length, xid and op
	)
	switch {
	case !w.said && len(p) >= connectZxid+8:
		w.said, w.sent = true, w.now()
		binary.BigEndian.PutUint64(p[connectZxid:], uint64(w.before))
		w.resumed(p)
	case len(p) >= watchesZxid+8 && jute.Op(binary.BigEndian.Uint32(p[8:])) == jute.OpSetWatches:
		binary.BigEndian.PutUint64(p[watchesZxid:], uint64(w.before))
	}
	if _, err := w.Conn.Write(p); err != nil {
		_ = w.Close() // so that the read fails
	}
	return len(p), nil
}

// resumed puts id and password into a connect request for a new session: the client knows no other way to begin. Once it has been
// told of them it asks for that session by itself.
func (w *wire) resumed(p []byte) {
	const (
		id       = 4 + 4 + 8 + 4 // after length, protocol version, zxid and timeout
		password = id + 8 + 4    // behind its own length
		length   = 16
	)
	if w.resume == nil || len(w.resume.password) != length || len(p) < password+length || binary.BigEndian.Uint64(p[id:]) != 0 {
		return
	}
	binary.BigEndian.PutUint64(p[id:], uint64(w.resume.session))
	copy(p[password:], w.resume.password)
}

// Close closes the connection.
func (w *wire) Close() error {
	w.stands.Store(false)
	return w.Conn.Close()
}

// SetReadDeadline caps the client's deadline.
func (w *wire) SetReadDeadline(t time.Time) error { return w.Conn.SetReadDeadline(w.capped(t)) }

// SetWriteDeadline caps the client's deadline.
func (w *wire) SetWriteDeadline(t time.Time) error { return w.Conn.SetWriteDeadline(w.capped(t)) }

func (w *wire) capped(t time.Time) time.Time {
	if latest := time.Now().Add(w.limit); !t.IsZero() && t.After(latest) && !(w.ready && w.patient) {
		return latest
	}
	return t
}

func (w *wire) Read(p []byte) (int, error) {
	for len(w.frame) == 0 {
		if err := w.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, w.frame)
	w.frame = w.frame[n:]
	return n, nil
}

// next reads one frame, length included.
func (w *wire) next() error {
	if w.in == nil {
		w.in = bufio.NewReaderSize(w.Conn, 1<<10)
	}
	var head [4]byte
	n, err := io.ReadFull(w.in, head[:])
	length := int32(binary.BigEndian.Uint32(head[:]))
	if !w.ready && (err != nil || length < 0 || length > maxGreeting) {
		err = w.noGreeting(head[:n], err)
		w.refused(err)
	}
	if err != nil {
		return err
	}
	body, err := jute.ReadFrameBody(w.in, length, maxFrame)
	if err != nil {
		return err
	}
	frame := append(head[:], body...)
	if !w.ready {
		return w.greet(frame)
	}
	var reply jute.ReplyHeader
	if err := jute.Unmarshal(body, &reply); err != nil {
		return fmt.Errorf("the answer cannot be read: %w", err)
	}
	if reply.Xid == xidAuth {
		if reply.Code != jute.OK {
			w.refused(errAuthRefused)
			return errAuthRefused
		}
		return nil // swallowed: the client knows nothing of this request
	}
	if reply.Xid > 0 && reply.Zxid > 0 {
		w.seen.Store(max(reply.Zxid, w.seen.Load()))
		clear(frame[8:16])
	}
	w.frame = frame
	return nil
}

// greet takes the answer to the connect request.
func (w *wire) greet(frame []byte) error {
	var hello jute.ConnectResponse
	if err := jute.Unmarshal(frame[4:], &hello); err != nil {
		return fmt.Errorf("the greeting cannot be read (is this a ZooKeeper server?): %w", err)
	}
	w.ready = true
	w.stands.Store(true)
	w.frame = frame
	w.greeted(handshake{
		server: w.server, sent: w.sent, timeout: time.Duration(hello.Timeout) * time.Millisecond,
		session: hello.SessionID, password: hello.Password,
	})
	if hello.SessionID == 0 || w.auth == nil {
		return nil
	}
	_, err := w.Conn.Write(w.auth.frames())
	return err
}
