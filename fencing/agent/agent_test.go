package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/fencing"
	"understudy/supervisor/testbed/must"
)

var (
	secret = []byte("a secret of sixteen and more")
	target = fencing.Target{
		Service: "db", Node: "a", Machine: "m1", Boot: "b1", Token: 41, Address: "a:8438", Tree: json.RawMessage(`{"kind":"cgroup"}`), Seen: fencing.ProcessID{Pid: 7, Start: 70},
		By: fencing.Claimant{Node: "b", Token: 42},
	}
	asked = Question{
		Service: "db", Node: "a", Machine: "m1", Boot: "b1", Token: 41, Tree: json.RawMessage(`{"kind":"cgroup"}`), Seen: fencing.ProcessID{Pid: 7, Start: 70}, By: "b", ByToken: 42,
	}
)

// desk is a server whose conversations go over pipes.
type desk struct {
	*Server
	ctx    context.Context
	killed atomic.Int64 // how often it was asked to kill, and by proof
	wg     sync.WaitGroup

	mu  sync.Mutex // guards log
	log bytes.Buffer
}

func (d *desk) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.log.Write(p)
}

func (d *desk) said() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.log.String()
}

func newDesk(t testing.TB, prove Prove) *desk {
	d := &desk{ctx: t.Context()}
	if prove == nil {
		prove = func(context.Context, Question) (fencing.Liveness, string, error) { return fencing.Dead, "killed", nil }
	}
	d.Server = &Server{
		Keys: Shared(secret), Self: Answer{Node: "a", Machine: "m1", Boot: "b1"},
		Logger: hclog.New(&hclog.LoggerOptions{Output: d}),
		Prove: func(ctx context.Context, q Question) (fencing.Liveness, string, error) {
			d.killed.Add(1)
			return prove(ctx, q)
		},
	}
	return d
}

// dial is a Method's Dial.
func (d *desk) dial(context.Context, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	d.wg.Go(func() { d.Answer(d.ctx, theirs) })
	return wire{ours}, nil
}

// wire is a pipe whose deadlines can be set when the other side has closed it, as those of a TCP connection can.
type wire struct{ net.Conn }

func (w wire) SetDeadline(at time.Time) error {
	if err := w.Conn.SetDeadline(at); !errors.Is(err, io.ErrClosedPipe) {
		return err
	}
	return nil
}

func (d *desk) method() Method { return Method{Keys: Shared(secret), Dial: d.dial} }

func TestProvedDeathIsBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got Question
		d := newDesk(t, func(_ context.Context, q Question) (fencing.Liveness, string, error) {
			got = q
			return fencing.Dead, "killed", nil
		})
		must.OK(t, d.method().Fence(t.Context(), target))
		d.wg.Wait()
		if got.Nonce = nil; got.Service != "db" || got.Token != 41 || got.By != "b" || got.ByToken != 42 || string(got.Tree) != string(asked.Tree) {
			t.Errorf("asked %+v", got)
		}
		if said := d.said(); !strings.Contains(said, "how=killed") || !strings.Contains(said, "asked_by=b") {
			t.Error(said)
		}
	})
}

// What a machine does not know for certain it does not say, and is not asked again.
func TestNothingElseIsCalledDead(t *testing.T) {
	for name, c := range map[string]struct {
		prove Prove
		self  *Answer
		alive bool
	}{
		"unknown":        {prove: vouches(fencing.Unknown, nil)},
		"alive":          {prove: vouches(fencing.Alive, nil), alive: true},
		"cannot end it":  {prove: vouches(fencing.Alive, errors.New("it does not die")), alive: true},
		"dead, it fears": {prove: vouches(fencing.Dead, errors.New("not quite"))},
		"other machine":  {self: &Answer{Node: "a", Machine: "m2", Boot: "b1"}},
		"other boot":     {self: &Answer{Node: "other", Machine: "m1", Boot: "b2"}},
		"no machine":     {self: &Answer{Node: "a", Boot: "b2"}},
		"no boot":        {self: &Answer{Node: "a", Machine: "m1"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t, c.prove)
				if c.self != nil {
					d.Self = *c.self
				}
				began := time.Now()
				err := d.method().Fence(t.Context(), target)
				if !errors.Is(err, fencing.ErrNotDead) || errors.Is(err, fencing.ErrAlive) != c.alive {
					t.Error(err)
				}
				if time.Since(began) > time.Second || d.killed.Load() != 1 {
					t.Errorf("after %v, asked %d times", time.Since(began), d.killed.Load())
				}
				d.wg.Wait()
			})
		})
	}
}

// "Alive" is an answer only while it is waited for: else the asker goes on as after none, and may start the program by a delay.
func TestWhatDoesNotDieIsToldInTime(t *testing.T) {
	for _, patience := range []time.Duration{time.Second, 3 * time.Second, 5 * time.Second, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk(t, func(ctx context.Context, _ Question) (fencing.Liveness, string, error) {
				<-ctx.Done()
				return fencing.Alive, "", errors.Join(ctx.Err(), errors.New("it does not die"))
			})
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := d.method().Fence(ctx, target); !errors.Is(err, fencing.ErrAlive) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v: %v", patience, err)
			}
			d.wg.Wait()
		})
	}
}

func vouches(v fencing.Liveness, err error) Prove {
	return func(context.Context, Question) (fencing.Liveness, string, error) { return v, "", err }
}

// No process outlives a boot: the machine itself may say so once it is up again. It is told which effects may.
func TestLaterBootOfTheMachineIsBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		survives := target
		survives.Survive = []string{"role"}
		var got fencing.Target
		d := newDesk(t, func(_ context.Context, q Question) (fencing.Liveness, string, error) {
			got = q.Target("/root")
			return fencing.Dead, "booted", nil
		})
		d.Self.Boot = "b2"
		for _, one := range []fencing.Target{target, survives} {
			must.Report(t, d.method().Fence(t.Context(), one))
			d.wg.Wait()
			if got.Root != "/root" || got.Boot != one.Boot || got.Token != one.Token || !slices.Equal(got.Survive, one.Survive) {
				t.Errorf("asked for %+v", got)
			}
		}
	})
}

// While one agent is replaced by another, nobody may be there for a moment.
func TestItIsAskedAgainUntilItAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		m, tries := d.method(), 0
		m.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
			if tries++; tries < 5 {
				return nil, errors.New("nobody listens")
			}
			return d.dial(ctx, addr)
		}
		if err := m.Fence(t.Context(), target); err != nil || tries != 5 {
			t.Errorf("%v after %d tries", err, tries)
		}
		d.wg.Wait()
		silent := Method{Keys: Shared(secret), Dial: func(context.Context, string) (net.Conn, error) {
			return nil, errors.New("nobody listens")
		}}
		ctx, cancel := context.WithTimeoutCause(t.Context(), 3*time.Second, errors.New("no answer within 3s"))
		defer cancel()
		if err := silent.Fence(ctx, target); err == nil || !strings.Contains(err.Error(), "nobody listens (no answer within 3s)") {
			t.Error(err)
		}
	})
}

// lure listens as an agent would, and hands out connections to whoever misuses them.
func lure(talk func(conn net.Conn)) func(context.Context, string) (net.Conn, error) {
	return func(context.Context, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			talk(theirs)
		}()
		return wire{ours}, nil
	}
}

// heard is what a question looks like on the wire.
func heard(conn net.Conn) (body, mac []byte, err error) { return receive(conn) }

// Who does not know the secret can say what he likes.
func TestLiesAreNotBelieved(t *testing.T) {
	dead := func(conn net.Conn, with []byte, nonce, mac []byte) {
		body, _ := json.Marshal(Answer{Dead: true, Service: "db", Token: 41, Node: "a", Machine: "m1", Boot: "b1"})
		_ = send(conn, body, seal(with, answering, nonce, mac, body))
	}
	var recorded []byte // a true answer to another question
	for name, talk := range map[string]func(conn net.Conn){
		"another secret": func(conn net.Conn) {
			nonce := newNonce()
			_ = greet(conn, nonce)
			_, mac, _ := heard(conn)
			dead(conn, []byte("another secret"), nonce, mac)
		},
		"an answer to another question": func(conn net.Conn) {
			nonce := make([]byte, nonceSize) // the very nonce of the other time
			_ = greet(conn, nonce)
			_, mac, _ := heard(conn)
			if recorded == nil {
				body, _ := json.Marshal(Answer{Dead: true, Service: "db", Token: 41, Node: "a", Machine: "m1", Boot: "b1"})
				recorded = slices.Concat(body, seal(secret, answering, nonce, []byte("another question's MAC"), body))
			}
			_ = mac
			_ = send(conn, recorded[:len(recorded)-macSize], recorded[len(recorded)-macSize:])
		},
		"the question itself": func(conn net.Conn) {
			_ = greet(conn, newNonce())
			body, mac, _ := heard(conn)
			_ = send(conn, body, mac)
		},
		"nothing":         func(net.Conn) {},
		"silence":         func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) },
		"another version": func(conn net.Conn) { _, _ = conn.Write(bytes.Repeat([]byte("HTTP/1.1 400 Bad PromiseRequest\r\n"), 4)) },
		"too much": func(conn net.Conn) {
			_ = greet(conn, newNonce())
			_, _, _ = heard(conn)
			_, _ = conn.Write(bytes.Repeat([]byte{0xff}, 1<<20))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				if err := (Method{Keys: Shared(secret), Dial: lure(talk)}).Fence(ctx, target); err == nil {
					t.Error("it was believed")
				}
			})
		})
	}
}
