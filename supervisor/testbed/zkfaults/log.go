package zkfaults

import (
	"slices"
	"time"

	"understudy/election/jute"
	"understudy/election/zkmem"
)

type entryKind int

const (
	entryChange entryKind = iota
	entryOpen             // of a session
	entryClose
)

// entry is a change in the log.
type entry struct {
	zxid    int64
	now     int64
	kind    entryKind
	order   order
	who     zkmem.Caller
	timeout time.Duration
	expired bool
	code    jute.Code // not OK: it was refused, but took its zxid
	origin  *request  // who asked for it
}

// history is all changes that a server knows of; those beyond done may never hold.
type history struct {
	entries []*entry
	done    int64 // the zxid up to which they are carried out
}

// after is where the entries begin that are beyond a zxid.
func (h *history) after(zxid int64) int {
	i, _ := slices.BinarySearchFunc(h.entries, zxid+1, func(e *entry, zxid int64) int { return int(e.zxid - zxid) })
	return i
}

// newest is the greatest zxid in it.
func (h *history) newest() int64 {
	if n := len(h.entries); n > 0 {
		return max(h.done, h.entries[n-1].zxid)
	}
	return h.done
}

// join takes over another server's, in place of all changes that were not carried out.
func (h *history) join(other *history) {
	h.entries = h.entries[:h.after(h.done)]
	h.entries = append(h.entries, other.entries[other.after(h.done):]...)
}

// drop forgets the beginning.
func (h *history) drop(zxid int64) { h.entries = slices.Clone(h.entries[h.after(zxid):]) }
