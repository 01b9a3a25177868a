package zkfaults

import (
	"maps"
	"time"

	"understudy/election/zkmem"
)

// database is what all servers of an ensemble agree on: the data and the sessions.
type database struct {
	*zkmem.Data
	sessions *sessionTable
	timeouts map[int64]time.Duration // of each session, as it was negotiated last
	created  map[int64]time.Duration // of each session, as it was negotiated first: the log keeps this one
}

func newDatabase(tick time.Duration) *database {
	return &database{
		Data:     zkmem.NewData(),
		sessions: newSessionTable(tick, time.Now()),
		timeouts: map[int64]time.Duration{},
		created:  map[int64]time.Duration{},
	}
}

// newEpoch is a newly elected leader's.
func (d *database) newEpoch() { d.Zxid = (d.Zxid>>32 + 1) << 32 }

func (d *database) openSession(timeout time.Duration) int64 {
	d.Skip()
	s := d.sessions.create(timeout)
	d.timeouts[s.id], d.created[s.id] = timeout, timeout
	return s.id
}

func (d *database) touch(id int64, timeout time.Duration) bool {
	if !d.sessions.touch(id, timeout) {
		return false
	}
	d.timeouts[id] = timeout
	return true
}

// closeSession ends a session and, in the same transaction, deletes its ephemerals.
func (d *database) closeSession(id int64) []zkmem.Change {
	changes := d.EndSession(id)
	delete(d.sessions.byID, id)
	delete(d.timeouts, id)
	delete(d.created, id)
	return changes
}

func (d *database) clone() *database {
	table := *d.sessions
	table.byID = map[int64]*session{}
	for id, s := range d.sessions.byID {
		one := *s
		table.byID[id] = &one
	}
	return &database{d.Clone(), &table, maps.Clone(d.timeouts), maps.Clone(d.created)}
}
