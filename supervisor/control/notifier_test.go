package control

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"

	"understudy/election"
)

// teller is a notifier whose notices are kept in place of being sent.
type teller struct {
	*bed
	n       *Notifier
	sent    []Notice
	refuses error
	untold  error // as the node's status has it
}

func (b *bed) teller(node string) *teller {
	other := bedOn(b.T, b.addr) // a session of its own
	t := &teller{bed: other}
	t.n = &Notifier{Root: root, Node: node, Log: hclog.NewNullLogger(), Send: func(_ context.Context, n Notice) error {
		t.sent = append(t.sent, n)
		return t.refuses
	}, Untold: func(why error) { t.untold = why }}
	return t
}

// at has it look, so long after the beginning, and returns what it has sent.
func (t *teller) at(d time.Duration) string {
	t.Helper()
	t.sent = nil
	if err := t.n.look(t.Context(), t.c, began.Add(d)); err != nil && !errors.Is(err, t.refuses) {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, n := range t.sent {
		all.WriteString(n.Text)
	}
	return all.String()
}

func (a *actor) activation(number string, token int64, node string, ended election.Reason) {
	a.Helper()
	start := began.Add(time.Duration(token) * time.Second)
	ready := start.Add(time.Second)
	w := election.Activation{Node: node, Token: token, Start: start, Started: &start, Ready: &ready, Reason: ended}
	if ended != "" {
		end := start.Add(3 * time.Second)
		w.End = &end
	}
	a.put(paths("web").History()+"/"+number, w, 0)
}

func (a *actor) takes(service, node string) (token int64) {
	a.Helper()
	a.activate(service, node)
	return a.status(service).Services[0].Token
}

func expect(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: told %q, want %q", what, got, want)
	}
}

func TestATakeoverIsToldOnceAndALostStandbyOnceItHasSettled(t *testing.T) {
	b := newBed(t)
	one, two := b.session(), b.session()
	first := one.takes("web", "n1")
	one.activation("0000000001", first, "n1", "")
	two.member("web", "n2", "standby", "")
	teller := b.teller("n1")
	expect(t, "all is well", teller.at(0)+teller.at(time.Minute), "")

	one.release("web")
	one.conn.Close()
	two.del(paths("web").Members() + "/n2")
	second := two.takes("web", "n2")
	two.activation("0000000002", second, "n2", "")
	got := teller.at(2 * time.Minute)
	if !strings.HasPrefix(got, "web: n2 has taken over from n1 (no word of its end), nothing ran for ") {
		t.Errorf("after the takeover: told %q", got)
	}
	if e := teller.sent[0].Events[0]; e.Event != "takeover" || e.Activation.Token != second || e.Ended.Token != first {
		t.Errorf("the activations of a takeover: %+v", e)
	}
	expect(t, "it was told", teller.at(2*time.Minute+5*time.Second), "")
	if got := teller.at(3 * time.Minute); !strings.HasPrefix(got, "web: active on n2, ok: No standby") {
		t.Errorf("without a standby: told %q", got)
	}
	expect(t, "that was told too", teller.at(4*time.Minute), "")
	b.session().member("web", "n1", "standby", "")
	expect(t, "it is back, but may go again", teller.at(5*time.Minute), "")
	expect(t, "it stays", teller.at(6*time.Minute), "web: active on n2, ok\n")
}

func TestNobodyIsToldOfWhatAnOperatorHasOrdered(t *testing.T) {
	b := newBed(t)
	one, two := b.session(), b.session()
	one.activation("0000000001", one.takes("web", "n1"), "n1", election.SwitchAsked)
	two.member("web", "n2", "standby", "")
	teller := b.teller("n1")
	expect(t, "all is well", teller.at(0), "")
	one.release("web")
	one.conn.Close()
	two.del(paths("web").Members() + "/n2")
	two.activation("0000000002", two.takes("web", "n2"), "n2", "")
	b.session().member("web", "n1", "standby", "")
	expect(t, "after a switchover", teller.at(time.Minute)+teller.at(2*time.Minute), "")
}

// One node tells, and what it could not send, or may not have sent, is sent by the next one.
func TestANoticeIsNotLostWithItsSender(t *testing.T) {
	b := newBed(t)
	one := b.session()
	one.activation("0000000001", one.takes("web", "n1"), "n1", "")
	first, second := b.teller("n1"), b.teller("n2")
	first.at(0)
	second.at(0)
	first.refuses = errors.New("no mail server")
	first.at(time.Minute)
	if len(first.sent) != 1 {
		t.Fatalf("tried %d notices, want 1", len(first.sent))
	}
	expect(t, "the other one is on duty", second.at(time.Minute), "")
	first.c.Close()
	second.at(2 * time.Minute)
	if len(second.sent) != 1 || second.sent[0].ID != first.sent[0].ID {
		t.Errorf("the next one sent %+v, want %+v", second.sent, first.sent)
	}
	expect(t, "it was sent", second.at(3*time.Minute), "")
}

// The status of the node on duty has why people are not told, until they are, or another node is on duty.
func TestThatPeopleAreNotToldIsKnown(t *testing.T) {
	b := newBed(t)
	b.session().takes("web", "n1")
	teller := b.teller("n1")
	teller.at(0)
	teller.refuses = errors.New("no mail server")
	for _, c := range []struct {
		refuses error
		at      time.Duration
	}{{teller.refuses, time.Minute}, {nil, 2 * time.Minute}} {
		teller.refuses = c.refuses
		if teller.at(c.at); !errors.Is(teller.untold, c.refuses) || len(teller.sent) != 1 {
			t.Errorf("untold %v, want %v; sent %v", teller.untold, c.refuses, teller.sent)
		}
	}
	other := b.teller("n3")
	other.untold = errors.New("of an earlier duty")
	if other.at(3 * time.Minute); other.untold != nil || len(other.sent) != 0 {
		t.Errorf("off duty: untold %v, sent %v", other.untold, other.sent)
	}
}

// Two may take themselves for the one on duty, as long as a server lags behind.
func TestWhoeverIsNoLongerOnDutySendsNothing(t *testing.T) {
	b := newBed(t)
	b.session().takes("web", "n1")
	late := b.teller("n1")
	late.at(0)
	l, err := late.c.ledger(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.c.keep(t.Context(), &ledger{Told: map[string]told{}, version: l.version}); err != nil {
		t.Fatal(err)
	}
	if err := late.c.keep(t.Context(), l); !errors.Is(err, zk.ErrBadVersion) {
		t.Errorf("writing after another one: %v", err)
	}
}

func TestANoticeHasRoomInAZnode(t *testing.T) {
	events := make([]Event, 5000)
	for i := range events {
		events[i] = Event{Service: "web", Event: "alone", Text: "web: active on n2, ok: No standby"}
	}
	n := noticeOf(events, root, began)
	if len(n.Events) != mostEvents || !strings.HasSuffix(n.Text, "and of 4950 more services\n") {
		t.Errorf("%d events, the text ends with %q", len(n.Events), n.Text[len(n.Text)-40:])
	}
}
