package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/config"
)

// lives plays a primary on a, its record, and the other nodes' heartbeats. It notes what happens.
type lives struct {
	live   []string // as it is recorded
	seen   followers
	at     map[string]uint64
	reach  uint64
	fails  error // of Count
	loses  error // of SetLive
	theirs bool  // another node was promoted
	said   []string
}

func (s *lives) Live(context.Context) (election.Promotion, bool, error) {
	return election.Promotion{Token: 9, Live: s.live}, !s.theirs, nil
}

func (s *lives) SetLive(_ context.Context, _ election.Promotion, live []string) error {
	s.said = append(s.said, "record "+strings.Join(live, " "))
	if s.loses == nil {
		s.live = live
	}
	return s.loses
}

func (s *lives) Count(_ context.Context, nodes []string) error {
	s.said = append(s.said, "count "+strings.Join(nodes, " "))
	return s.fails
}

func (s *lives) Reaches(context.Context) (uint64, error) { return s.reach, nil }
func (s *lives) follow() followers                       { return s.seen }

// set is the live set of a, whose program counts b and c.
func (s *lives) set() *liveSet {
	s.live, s.reach = []string{"a", "b", "c"}, 10
	s.seen = followers{token: 9, nodes: []string{"b", "c"}, known: []string{"a", "b", "c"}}
	s.at = map[string]uint64{"b": 10, "c": 10}
	return &liveSet{
		me: "a", token: 9, record: s, primary: s, follow: s.follow, log: hclog.NewNullLogger(), counted: []string{"b", "c"}, sure: true, beats: time.Second,
		conf: func() config.Replicated {
			return config.Replicated{Copies: config.Command{"copies"}, Interval: time.Second, Timeout: time.Second}
		},
		at: func(_ context.Context, node string) (election.At, bool, error) {
			p, ok := s.at[node]
			return election.At{Token: 9, Position: p}, ok, nil
		},
	}
}

// looks looks so often, and returns what has happened since.
func (s *lives) looks(ctx context.Context, l *liveSet, times int) string {
	s.said = nil
	for range times {
		if err := l.look(ctx); err != nil {
			s.said = append(s.said, err.Error())
		}
	}
	return strings.Join(s.said, ", ")
}

func (s *lives) demand(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%q, not %q", got, want)
	}
}

// The record holds whatever the program may count: it grows before the program counts more, and shrinks after that counts fewer, once those
// that stay have all.
func TestTheLiveSetIsNeverSmallerThanWhatTheProgramCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &lives{}
		l, ctx := s.set(), t.Context()
		s.demand(t, s.looks(ctx, l, 2), "")
		s.seen.nodes, s.at["b"] = []string{"b"}, 9
		s.demand(t, s.looks(ctx, l, 1), "") // it may be back at once
		s.demand(t, s.looks(ctx, l, 1), "count b, "+errBehind.Error())
		s.at["b"] = 10
		s.demand(t, s.looks(ctx, l, 1), "record a b")
		s.demand(t, s.looks(ctx, l, 2), "")
		s.seen.nodes = nil // writes wait: the last one stays
		s.demand(t, s.looks(ctx, l, 3), "")
		s.seen.nodes = []string{"c", "d"}
		s.demand(t, s.looks(ctx, l, 1), "record a b c d, count b c d")
		s.at["d"] = 10
		s.demand(t, s.looks(ctx, l, 2), "count c d, record a c d")
	})
}

// Where the outcome of a step is not known, the record stays, and the next growth begins with a new version of it.
func TestTheLiveSetStaysWhereSomethingIsNotKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &lives{}
		l, ctx := s.set(), t.Context()
		s.seen.nodes, s.fails = []string{"b"}, errors.New("no")
		s.demand(t, s.looks(ctx, l, 3), "count b, copies: no, count b, copies: no")
		s.seen.nodes = []string{"b", "c"}
		s.demand(t, s.looks(ctx, l, 1), "record a b c, count b c, copies: no")
		s.fails = nil
		s.demand(t, s.looks(ctx, l, 2), "record a b c, count b c")
		s.seen.nodes, s.loses = []string{"c"}, errors.New("no answer")
		s.demand(t, s.looks(ctx, l, 2), "count c, record a c, no answer")
		s.seen.nodes = []string{"b"} // what was written last may still come
		s.demand(t, s.looks(ctx, l, 1), "record a b c, no answer")
		s.seen.nodes = []string{"b", "c"}
		s.demand(t, s.looks(ctx, l, 1), "record a b c, no answer")
		s.loses = nil
		s.demand(t, s.looks(ctx, l, 1), "record a b c, count b c")
		s.theirs, s.seen.nodes = true, nil
		s.demand(t, s.looks(ctx, l, 3), "")
		s.theirs, s.seen = false, followers{token: 8, nodes: []string{"d"}}
		s.demand(t, s.looks(ctx, l, 3), "")
	})
}

// A config that gains or loses `copies` while the primary runs leaves no record that is too small.
func TestTheLiveSetFollowsItsConfig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &lives{}
		l, ctx := s.set(), t.Context()
		given := l.conf
		l.conf = func() config.Replicated { return config.Replicated{} }
		s.demand(t, s.looks(ctx, l, 2), "record ")
		l.conf = given
		s.seen.nodes = []string{"b"}
		s.demand(t, s.looks(ctx, l, 1), "record a b c, count b c")
	})
}

// Only a copy that is a healthy follower of this promotion may acknowledge its writes.
func TestWhoFollowsIsKnownByItsReport(t *testing.T) {
	well := election.CopyReport{Node: "b", Era: 1, Followed: 9, Role: "follower"}
	change := func(f func(*election.CopyReport)) election.CopyReport {
		one := well
		f(&one)
		return one
	}
	c := &copyHere{}
	for i, one := range []election.CopyReport{
		well,
		change(func(r *election.CopyReport) { r.Node = "a" }), change(func(r *election.CopyReport) { r.Era = 2 }),
		change(func(r *election.CopyReport) { r.Followed = 8 }), change(func(r *election.CopyReport) { r.Toward = 9 }),
		change(func(r *election.CopyReport) { r.Role = "unknown" }), change(func(r *election.CopyReport) { r.Why = "ill" }),
	} {
		c.noteFollowers(election.CopiesSeen{Era: 1, Holder: "a", Token: 9, Copies: []election.CopyReport{one}})
		if got := c.follow(); got.token != 9 || (len(got.nodes) == 1) != (i == 0) {
			t.Errorf("%+v: %+v", one, got)
		}
	}
}

// A recorded live set takes the place of positions_from, and of nodes that are only known. Whom an operator has had forgotten is not in it.
func TestOnlyTheLiveSetIsCompared(t *testing.T) {
	ten, twelve := uint64(10), uint64(12)
	v := made(t, Conf{Service: config.Service{Replicated: &config.Replicated{}}}, nil)
	mine := election.CopyReport{Node: "a", Followed: 5, Position: &ten, Vacancy: 7, Stands: true}
	outside := election.CopyReport{Node: "d", Followed: 5, Position: &twelve, Vacancy: 7, Stands: true}
	newer := outside
	newer.Followed = 6
	for _, c := range []struct {
		live, known []string
		beside      *election.CopyReport
		want        string
	}{
		{[]string{"a", "b"}, []string{"a", "b", "c", "d"}, nil, "{a   false}"},
		{[]string{"a", "b"}, []string{"a", "b", "c", "d"}, &outside, "{a   false}"},
		{[]string{"a", "b", "c"}, []string{"a", "b", "c", "d"}, &outside, "{ 1 of 2 copies have reported their position (b: it has reported nothing; c: it has reported nothing)  false}"},
		{[]string{"a", "b", "c"}, []string{"a", "c", "d"}, &outside, "{a   false}"},
		{[]string{"b", "c"}, []string{"b", "a"}, nil, "{ 0 of 1 copies have reported their position (b: it has reported nothing)  false}"},
		{[]string{"b", "c"}, []string{"a", "d"}, &outside, "{d   false}"}, // all of it is forgotten
		{[]string{"a", "b"}, []string{"a", "b", "d"}, &newer, "{d   false}"},
		{[]string{"a", "b"}, []string{"a", "b", "c", "d"}, &newer, "{ 2 of 3 copies have reported their position (b: it has reported nothing; c: it has reported nothing)  false}"},
	} {
		seen := election.CopiesSeen{Promoted: election.Promotion{Token: 5, Live: c.live}, Known: slices.Clone(c.known)}
		if c.beside != nil {
			seen.Copies = append(seen.Copies, *c.beside)
		}
		if got := fmt.Sprint((&comparing{v: v}).verdict(v.Given(), seen, 7, mine)); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
