package zkfaults

import (
	"slices"
	"time"

	"understudy/election/zkmem"
)

// session is one client's, whatever connection it uses. It ends at expires unless it is touched before.
type session struct {
	id      int64
	expires time.Duration // since the table's start, always a whole number of ticks
}

// sessionTable knows the sessions and when they end. As in the real server a session ends on a tick: the timeout is
// counted from the last sign of life and then rounded up, so it ends up to a tick late.
type sessionTable struct {
	tick   time.Duration
	start  time.Time
	nextID int64
	byID   map[int64]*session
	kept   map[int64]bool // they do not end for lack of signs of life: see Server.Keep
}

func newSessionTable(tick time.Duration, now time.Time) *sessionTable {
	t := &sessionTable{tick: tick, start: now, byID: map[int64]*session{}, kept: map[int64]bool{}, nextID: zkmem.FirstSession(now)}
	return t
}

func (t *sessionTable) create(timeout time.Duration) *session {
	s := &session{id: t.nextID}
	t.nextID++
	t.byID[s.id] = s
	t.touch(s.id, timeout)
	return s
}

// touch puts the end of a session off; false means that there is no such session.
func (t *sessionTable) touch(id int64, timeout time.Duration) bool {
	s, ok := t.byID[id]
	if !ok {
		return false
	}
	s.expires = ((time.Since(t.start)+timeout)/t.tick + 1) * t.tick
	return true
}

// due is the sessions whose time is up, in the order of their ends.
func (t *sessionTable) due() []int64 {
	now := time.Since(t.start)
	var list []*session
	for _, s := range t.byID {
		if s.expires <= now && !t.kept[s.id] {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b *session) int {
		if a.expires != b.expires {
			return int(a.expires - b.expires)
		}
		return int(a.id - b.id)
	})
	ids := make([]int64, len(list))
	for i, s := range list {
		ids[i] = s.id
	}
	return ids
}

// next is how long it takes until a session may end.
func (t *sessionTable) next() (wait time.Duration, ok bool) {
	for _, s := range t.byID {
		if t.kept[s.id] {
			continue
		}
		if left := s.expires - time.Since(t.start); !ok || left < wait {
			wait, ok = left, true
		}
	}
	return wait, ok
}

// revive gives every session its full timeout again, as a server does that has just started.
func (t *sessionTable) revive(timeout func(id int64) time.Duration) {
	for id := range t.byID {
		t.touch(id, timeout(id))
	}
}
