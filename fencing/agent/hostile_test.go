package agent

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/fencing"
	"understudy/supervisor/testbed/must"
)

// question is a whole message, sealed for a nonce.
func question(with, nonce []byte, change func(*Question)) []byte {
	q := asked
	q.Nonce = newNonce()
	if change != nil {
		change(&q)
	}
	body, _ := json.Marshal(q)
	text := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	return append(append(text, body...), seal(with, asking, nonce, body)...)
}

// Replayed, forged, cut short, oversized, slow: refused, told in the log, and nothing killed.
func TestHostileQuestionsKillNothing(t *testing.T) {
	var taped []byte // a question that was good once
	for name, c := range map[string]struct {
		write func(conn net.Conn, nonce []byte)
		says  string
	}{
		"replayed": {says: "not made with our secret", write: func(conn net.Conn, _ []byte) {
			if taped == nil {
				taped = question(secret, make([]byte, nonceSize), nil)
			}
			_, _ = conn.Write(taped)
		}},
		"another secret": {says: "not made with our secret", write: func(conn net.Conn, nonce []byte) {
			_, _ = conn.Write(question([]byte("another secret"), nonce, nil))
		}},
		"changed on its way": {says: "not made with our secret", write: func(conn net.Conn, nonce []byte) {
			text := question(secret, nonce, nil)
			text[20] ^= 1
			_, _ = conn.Write(text)
		}},
		"an answer's seal": {says: "not made with our secret", write: func(conn net.Conn, nonce []byte) {
			body, _ := json.Marshal(asked)
			_ = send(conn, body, seal(secret, answering, nonce, body))
		}},
		"cut short": {says: "cut short", write: func(conn net.Conn, nonce []byte) {
			text := question(secret, nonce, nil)
			_, _ = conn.Write(text[:len(text)-1])
			conn.Close()
		}},
		"oversized": {says: "oversized message", write: func(conn net.Conn, _ []byte) {
			_, _ = conn.Write([]byte{0, 1, 0, 0})
		}},
		"slow": {says: "timeout", write: func(conn net.Conn, nonce []byte) {
			for _, b := range question(secret, nonce, nil) {
				if _, err := conn.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(100 * time.Millisecond) // the fault itself
			}
		}},
		"of an older term": {says: "not newer than 41", write: func(conn net.Conn, nonce []byte) {
			_, _ = conn.Write(question(secret, nonce, func(q *Question) { q.ByToken = 41 }))
		}},
		"of no service": {says: "not a service name", write: func(conn net.Conn, nonce []byte) {
			_, _ = conn.Write(question(secret, nonce, func(q *Question) { q.Service = "../x\n" }))
		}},
		"without a nonce": {says: "no nonce", write: func(conn net.Conn, nonce []byte) {
			_, _ = conn.Write(question(secret, nonce, func(q *Question) { q.Nonce = nil }))
		}},
		"not JSON": {says: "read the question", write: func(conn net.Conn, nonce []byte) {
			_ = send(conn, []byte("dead?"), seal(secret, asking, nonce, []byte("dead?")))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t, nil)
				conn, _ := d.dial(t.Context(), "")
				nonce, err := greeted(conn)
				must.OK(t, err)
				began := time.Now()
				d.wg.Go(func() { c.write(conn, nonce) })
				if body, _, err := receive(conn); err == nil {
					t.Errorf("it was answered: %s", body)
				}
				conn.Close()
				d.wg.Wait()
				if d.killed.Load() != 0 {
					t.Error("it was obeyed")
				}
				if !strings.Contains(d.said(), c.says) {
					t.Errorf("the log does not say %q:\n%s", c.says, d.said())
				}
				if took := time.Since(began); took > helloPatience+200*time.Millisecond {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// However many there are, the log stays readable, and says how many were left out.
func TestOneLineASecondIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		for range 3 {
			for range 500 {
				conn, _ := d.dial(t.Context(), "")
				conn.Close()
				d.wg.Wait()
			}
			time.Sleep(time.Second)
		}
		if lines := strings.Count(d.said(), "\n"); lines != 3 || !strings.Contains(d.said(), "others_before=499") {
			t.Errorf("%d lines:\n%.2000s", lines, d.said())
		}
	})
}

// Connections that are held open and say nothing make room for those that come later.
func TestIdleConnectionsKeepNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		var idle []net.Conn
		for range 5 * maxUnproved {
			conn, _ := d.dial(t.Context(), "")
			if _, err := greeted(conn); err != nil {
				t.Fatal(err)
			}
			idle = append(idle, conn)
		}
		synctest.Wait()
		open := 0
		for _, conn := range idle {
			_ = conn.SetReadDeadline(time.Now().Add(time.Millisecond))
			if _, err := conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
				open++
			}
		}
		if open != maxUnproved {
			t.Errorf("%d are held", open)
		}
		must.Report(t, d.method().Fence(t.Context(), target))
		for _, conn := range idle {
			conn.Close()
		}
		d.wg.Wait()
	})
}

// A kill that takes long is cut off, and is no proof.
func TestKillThatHangsIsNoProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, func(ctx context.Context, _ Question) (fencing.Liveness, string, error) {
			<-ctx.Done()
			return fencing.Alive, "", context.Cause(ctx)
		})
		began := time.Now()
		err := d.method().Fence(t.Context(), target)
		if err == nil || time.Since(began) != killPatience {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		d.wg.Wait()
	})
}

// What a question is read from comes from outside: whatever it is, nothing is killed without the secret.
func FuzzConversation(f *testing.F) {
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte{0, 0, 0, 0})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Add(question([]byte("another secret"), make([]byte, nonceSize), nil))
	f.Fuzz(func(t *testing.T, text []byte) {
		d := newDesk(t, nil)
		conn, _ := d.dial(t.Context(), "")
		if _, err := greeted(conn); err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write(text)
		conn.Close()
		d.wg.Wait()
		if d.killed.Load() != 0 {
			t.Error("it was obeyed")
		}
	})
}

// An answer that was not sealed with the secret is never believed.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(magic))
	f.Add(append(append([]byte(magic), make([]byte, nonceSize)...), question(secret, nil, nil)...))
	f.Fuzz(func(t *testing.T, text []byte) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			buf := make([]byte, 4096)
			go func() { _, _ = theirs.Write(text); _ = theirs.SetReadDeadline(time.Now()) }()
			for {
				if _, err := theirs.Read(buf); err != nil {
					return
				}
			}
		}()
		q := asked
		q.Nonce = newNonce()
		if err := converse(ours, secret, asking, q, answering, new(Answer)); err == nil {
			t.Error("it was believed")
		}
		ours.Close()
	})
}
