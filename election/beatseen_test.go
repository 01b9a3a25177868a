package election

import (
	"context"
	"errors"
	"testing"
	"time"

	"understudy/election/jute"
)

// P3: a session rests on one znode. Writes to another one with its name do not extend the lease, and it is never made again.
func TestASessionEndsWithItsBeat(t *testing.T) {
	for name, again := range map[string]bool{"deleted": false, "made again": true} {
		inWorld(t, func(w *world) {
			path := NodesDir("/understudy") + "/a"
			err := w.open("a", func(ctx context.Context, s *Session) error {
				w.byHand(path)
				if again {
					w.asOperator(func(ctx context.Context, o *Session) error { return o.create(ctx, path, s.Self.data(), 0) })
				}
				acked := s.Acked()
				<-ctx.Done()
				if cause := context.Cause(ctx); !errors.Is(cause, ErrBeatGone) || s.Acked() != acked {
					w.Errorf("%s: %v, and the lease was extended by %v", name, cause, s.Acked()-acked)
				}
				if v, err := s.exists(w.Context(), path); v.exists != again || err != nil {
					w.Errorf("%s: it is there: %v %v", name, v.exists, err)
				}
				return nil
			})()
			if !errors.Is(err, ErrBeatGone) {
				w.Errorf("%s: %v", name, err)
			}
		})
	}
}

func TestWhatABeatIsSeenAs(t *testing.T) {
	const of, session = 7, 10 * time.Second
	at := func(version int32) view {
		v := view{exists: true, data: encode(Node{LeaseMs: session.Milliseconds()})}
		v.stat.EphemeralOwner, v.stat.Czxid, v.stat.Version = of, 1, version
		return v
	}
	replaced := func(session int64, version int32) view {
		return view{exists: true, data: encode(Node{Replaced: &LastBeat{SessionName(session), version}})}
	}
	one, two := make(chan struct{}), make(chan struct{})
	pace := beatEvery(session)
	over := OverAfter(session)
	for name, c := range map[string]struct {
		v     view
		after time.Duration
		in    chan struct{}
		data  generation
		every time.Duration // how often it is looked at
		since time.Duration // the first look is at 0
	}{
		"stands still":                     {at(3), pace, one, generation{epoch: 1}, pace, 0},
		"a heartbeat":                      {at(4), pace, one, generation{epoch: 1}, pace, pace},
		"gone":                             {view{}, pace, one, generation{epoch: 1}, pace, pace},
		"of another session":               {view{exists: true}, pace, one, generation{epoch: 1}, pace, pace},
		"replaced as it was seen":          {replaced(of, 3), pace, one, generation{epoch: 1}, pace, 0},
		"replaced after another heartbeat": {replaced(of, 4), pace, one, generation{epoch: 1}, pace, pace},
		"another one replaced":             {replaced(of+1, 3), pace, one, generation{epoch: 1}, pace, pace},
		"older data":                       {at(3), pace, one, generation{setBacks: 1, epoch: 1}, pace, pace},
		"another leader":                   {at(3), pace, one, generation{epoch: 2}, pace, pace},
		"another connection":               {at(3), pace, two, generation{epoch: 1}, pace, 0},
		"another connection, at the end":   {at(3), over, two, generation{epoch: 1}, pace, session / 2},
		"another connection to one server": {at(3), pace, two, generation{}, pace, pace},
		"a node that looks rarely":         {at(3), over, one, generation{epoch: 1}, over, 0},
		"answers were missing, at the end": {at(3), over, one, generation{epoch: 1}, pace, session / 2},
	} {
		w := &beat{of: beatOf{"a", of}}
		w.saw(at(3), look{in: one, data: generation{epoch: 1}, every: c.every})
		w.saw(c.v, look{now: c.after, in: c.in, data: c.data, every: c.every})
		w.saw(c.v, look{now: c.after + 1, in: c.in, data: c.data, every: c.every})
		if w.since != c.since {
			t.Errorf("%s: it stands still since %v, want %v", name, w.since, c.since)
		}
	}
}

// A node looks at each beat once a heartbeat, whatever the number of services.
func TestABeatIsLookedAtOnceAHeartbeat(t *testing.T) {
	inWorld(t, func(w *world) {
		w.within("a", func(ctx context.Context, s *Session) error {
			for range 50 {
				defer s.beats.watch(beatOf{"b", 1}).leave()
			}
			before := w.zk.Requests()[jute.OpGetData]
			time.Sleep(2 * testTimeout)
			if looks := w.zk.Requests()[jute.OpGetData] - before; looks < 20 || looks > 26 {
				w.Errorf("%d looks in %v", looks, 2*testTimeout)
			}
			return nil
		})
	})
}
