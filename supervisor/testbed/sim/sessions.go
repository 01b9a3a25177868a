package sim

import (
	"maps"
	"time"
)

// sessionsView is what the checker knows of ZooKeeper's sessions.
type sessionsView struct {
	of      map[string]int64 // by node; 0: its node is deleted
	over    map[int64]bool   // those that are no more
	owners  map[int64]bool   // those that had a lock
	lost    map[int64]bool   // those of them that a loss of data ended
	meddled map[int64]bool   // those that a stranger was attached to, or is about to be
	since   time.Time        // when data was last lost, or set back
}

func newSessionsView() sessionsView {
	return sessionsView{of: map[string]int64{}, over: map[int64]bool{}, owners: map[int64]bool{}, lost: map[int64]bool{}, meddled: map[int64]bool{}}
}

// ended notes that a session is no more.
func (sv *sessionsView) ended(session int64) { sv.over[session] = true }

// belongs notes a node's session.
func (sv *sessionsView) belongs(node string, session int64) { sv.of[node] = session }

// owns notes that a session has a lock.
func (sv *sessionsView) owns(session int64) { sv.owners[session] = true }

// wiped notes that ZooKeeper has lost its data.
func (sv *sessionsView) wiped() {
	maps.Copy(sv.lost, sv.owners)
	clear(sv.of)
	sv.since = time.Now()
}

// gone tells whether data was lost together with a lease's session. An older copy may have the session as well: it is not gone
// where a heartbeat was answered since.
func (sv *sessionsView) gone(seen leaseSeen) bool {
	return sv.lost[seen.session] && !seen.sent.After(sv.since)
}

// meddle notes that a stranger is about to be attached to a session.
func (sv *sessionsView) meddle(session int64) { sv.meddled[session] = true }

// endedByStranger tells whether a session is over to which a stranger was attached: nobody's lease had to end before.
func (sv *sessionsView) endedByStranger(session int64) bool {
	return sv.meddled[session] && sv.over[session]
}
