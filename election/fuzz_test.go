package election

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"understudy/election/jute"
	"understudy/supervisor/testbed/must"
)

// ourSession in what is fuzzed stands for the session of whoever reads it, ourTree for the tree of its child.
const (
	ourSession = "0xOURS"
	ourTree    = `{"of":"b"}`
	mostFuzzed = 64 << 10 // a client takes packets of twice that
)

func (s *Session) inserted(data []byte) []byte {
	return bytes.ReplaceAll(data, []byte(ourSession), []byte(SessionName(s.ID())))
}

// FuzzBreadCrumb lets a candidate find anything where the breadcrumb is. P5: it takes nothing for its own, and for nobody's,
// but what surely is; what it cannot read is fenced like somebody whose session lives; and nothing stands in the way for
// longer than it takes to fence it.
func FuzzBreadCrumb(f *testing.F) {
	f.Add([]byte(`{"node":"b","session":"` + ourSession + `","tree":` + ourTree + `}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > mostFuzzed {
			return
		}
		inWorld(t, func(w *world) {
			w.within("b", func(ctx context.Context, s *Session) error {
				data := s.inserted(data)
				if _, _, err := s.NewCandidate(ctx, "svc", Race); err != nil {
					return err
				}
				try(s.create(ctx, Paths{"/understudy", "svc"}.Crumb(), data, 0))
				_, cl := claimed(ctx, s, Race)
				w.isFenced(ctx, cl, data)
				if err := cl.Inscribe(ctx); err != nil {
					w.Errorf("fenced, it does not give way: %v", err)
				}
				return cl.Release(ctx)
			})
		})
	})
}

// isFenced demands that a claim fences whom the breadcrumb names, if that is anybody else.
func (w *world) isFenced(ctx context.Context, cl *Claim, data []byte) {
	crumb, unreadable := ReadBreadCrumb(data)
	if cl.Previous == nil {
		if unreadable != nil || crumb.Session != SessionName(cl.s.ID()) || string(crumb.Tree) != ourTree {
			w.Errorf("taken for our own: %s", data)
		}
		return
	}
	if _, err := cl.Delay(ctx, 0); err != nil || !cl.leased {
		w.Errorf("nobody has watched its node, and its lease counts as over: %v", err)
	}
	if unreadable != nil && cl.Previous.Node != "" {
		w.Errorf("it cannot be read, but it names %q", cl.Previous.Node)
	}
	if wait := time.Duration(cl.Previous.LeaseMs) * time.Millisecond; wait <= 0 {
		w.Errorf("it shortens the waiting by %v", wait)
	}
	if cl.PreviousToken <= 0 {
		w.Errorf("token %d", cl.PreviousToken)
	}
}

// FuzzRelease lets the guardians of a session find anything where its breadcrumb was. P2: they remove only what surely is
// that session's.
func FuzzRelease(f *testing.F) {
	f.Add([]byte(`{"node":"a","session":"` + ourSession + `"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > mostFuzzed {
			return
		}
		inWorld(t, func(w *world) {
			ticket, release := w.leave("a")
			data := bytes.ReplaceAll(data, []byte(ourSession), []byte(SessionName(ticket.Session)))
			w.asOperator(func(ctx context.Context, s *Session) error { return s.set(ctx, release.Crumb, data, -1) })
			must.OK(w, ticket.Close(w.Context(), w.dial, []Release{release}, endedAt(time.Now()), true))
			crumb, err := ReadBreadCrumb(data)
			ours := err == nil && crumb.Session == SessionName(ticket.Session)
			w.asOperator(func(ctx context.Context, s *Session) error {
				there, err := exists(ctx, s, release.Crumb)
				if there == ours {
					w.Errorf("it is there: %v", there)
				}
				return err
			})
		})
	})
}

// FuzzQueue orders anything: whatever order the names come in, all candidates see the same predecessor.
func FuzzQueue(f *testing.F) {
	f.Fuzz(func(t *testing.T, lines string) {
		names := strings.Split(lines, "\n")
		ordered := inOrder(names)
		slices.Reverse(names)
		if diff := cmp.Diff(ordered, inOrder(names)); diff != "" {
			t.Error(diff)
		}
		for i, name := range ordered {
			n, ok := sequence(name)
			if !ok || !slices.Contains(names, name) {
				t.Errorf("%q has no place", name)
			}
			if i > 0 {
				if before, _ := sequence(ordered[i-1]); before > n {
					t.Errorf("%q comes before %q", ordered[i-1], name)
				}
			}
		}
	})
}

// FuzzWire lets a server send anything. What the client gets of it is whole frames, and nothing before a greeting.
func FuzzWire(f *testing.F) {
	f.Add(jute.Frame(jute.ConnectResponse{Timeout: 4000, SessionID: 7, Password: make([]byte, 16)}))
	f.Fuzz(func(t *testing.T, sent []byte) {
		ours, theirs := net.Pipe()
		defer ours.Close()
		go func() {
			_, _ = theirs.Write(sent)
			theirs.Close()
		}()
		greeted := 0
		w := &wire{Conn: ours, limit: time.Second, seen: new(atomic.Int64), greeted: func(handshake) { greeted++ }, refused: func(error) {}}
		var got []byte
		for buf := make([]byte, 100); ; {
			n, err := w.Read(buf)
			got = append(got, buf[:n]...)
			if err != nil {
				break
			}
		}
		if len(got) > 0 && greeted != 1 || len(got) > len(sent) {
			t.Errorf("%d greetings, %d bytes of %d", greeted, len(got), len(sent))
		}
		for in := bytes.NewReader(got); in.Len() > 0; {
			if _, err := jute.ReadFrame(in, maxFrame); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// What decides on a death is read wholly or not at all.
func TestBreadCrumbThatIsInDoubtIsNotRead(t *testing.T) {
	good := BreadCrumb{Node: "a", Session: "0x77", LeaseMs: 4000, Token: 9, Machine: "m", Boot: "b", Tree: json.RawMessage(`{}`)}
	if got, err := ReadBreadCrumb(encode(good)); err != nil || !cmp.Equal(got, good) {
		t.Fatalf("%+v: %v", got, err)
	}
	least := BreadCrumb{Node: "a", LeaseMs: 4000} // of whom nobody knows whether its session is over
	if got, err := ReadBreadCrumb(encode(least)); err != nil || !cmp.Equal(got, least) {
		t.Fatalf("%+v: %v", got, err)
	}
	for what, spoil := range map[string]func(b *BreadCrumb){
		"no node":                 func(b *BreadCrumb) { b.Node = "" },
		"a path for a node":       func(b *BreadCrumb) { b.Node = "../x" },
		"a znode that cannot be":  func(b *BreadCrumb) { b.Node = ".." },
		"a name with a NUL":       func(b *BreadCrumb) { b.Node = "a\x00" },
		"a number for a session":  func(b *BreadCrumb) { b.Session = "119" },
		"a session of none":       func(b *BreadCrumb) { b.Session = "0x0" },
		"a session with a nought": func(b *BreadCrumb) { b.Session = "0x077" },
		"a negative timeout":      func(b *BreadCrumb) { b.LeaseMs = -1 },
		"a timeout of ages":       func(b *BreadCrumb) { b.LeaseMs = 1 << 62 },
		"a negative token":        func(b *BreadCrumb) { b.Token = -1 },
		"a machine without boot":  func(b *BreadCrumb) { b.Boot = "" },
	} {
		b := good
		spoil(&b)
		if got, err := ReadBreadCrumb(encode(b)); err == nil || !cmp.Equal(got, BreadCrumb{}) {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
	for _, data := range []string{"", "null", "{", "[]", `"x"`, "{}", string(encode(good)) + "x", `{"node":7}`, strings.Repeat("[", 20000)} {
		if _, err := ReadBreadCrumb([]byte(data)); err == nil {
			t.Errorf("%.20q is read", data)
		}
	}
	var syntax *json.SyntaxError
	if _, err := ReadBreadCrumb([]byte("{")); !errors.As(err, &syntax) {
		t.Errorf("the reason is not told: %v", err)
	}
}

// An entry of the history that is none is left as it is.
func TestHistoryThatCannotBeReadIsNotAmended(t *testing.T) {
	inWorld(t, func(w *world) {
		w.within("a", func(ctx context.Context, s *Session) error {
			c := stand(ctx, s, Race)
			for _, data := range []string{"null", "{}", "{", `{"node":"a","end":7}`, ""} {
				path, err := call(ctx, s.client, func() (string, error) {
					return s.conn.Create(c.paths.History()+"/n_", []byte(data), zk.FlagSequence, s.acl)
				})
				try(err)
				if _, _, err := c.History.Record(ctx, Activation{Token: 1, Start: time.Now()}, "lost", Ending{}); err != nil {
					return err
				}
				if v, err := s.getW(ctx, path); err != nil || string(v.data) != data {
					w.Errorf("%q became %q: %v", data, v.data, err)
				}
			}
			return nil
		})
	})
}
