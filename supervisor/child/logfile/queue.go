package logfile

import (
	"bytes"
	"fmt"
	"sync"
	"time"

	"understudy/supervisor/wait"
)

const (
	queueSize = 2 << 20                // twice: what is being written, and what comes meanwhile
	patience  = 100 * time.Millisecond // for a file that is only slow
	idle      = time.Second            // after it, buffers are given back
)

// queue is between the pipe, which must not wait, and the file, which may: lines in their order, so many bytes of them, and
// after that a number of lines that are lost.
type queue struct {
	mu      sync.Mutex // guards the fields below
	data    []byte
	size    int
	midLine bool // the last byte taken in was not the end of a line
	cutting bool // the rest of a line is dropped
	lost    uint64
	total   uint64
	fault   error // why nothing can be written; nil: nothing speaks against it
	because error // the fault at the time of the loss
	stalled bool  // the patience is used up, until there is room again
	closed  bool
	more    chan struct{} // something to write, or closed
	room    chan struct{}
}

func newQueue(size int) *queue {
	return &queue{size: size, more: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// put takes in what the program wrote. It waits only for a file that is slow, and only so long.
func (q *queue) put(chunk []byte) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for !q.fits(len(chunk)) {
		select {
		case <-q.room:
			continue
		case <-timer.C:
			q.mu.Lock()
			q.stalled = true
			q.mu.Unlock()
		}
		break
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.take(chunk)
	wait.Poke(q.more)
}

// fits says whether there is room, or no use in waiting for it.
func (q *queue) fits(n int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.data)+n <= q.size || q.fault != nil || q.stalled
}

// take appends what there is room for. The caller holds mu.
func (q *queue) take(chunk []byte) {
	for len(chunk) > 0 {
		if q.cutting { // up to the end of a line that has lost its beginning or its middle
			end := bytes.IndexByte(chunk, '\n')
			if end < 0 {
				return
			}
			chunk, q.cutting = chunk[end+1:], false
			continue
		}
		room := q.size - len(q.data)
		if q.lost > 0 {
			note := q.note()
			if room < len(note)+min(len(chunk), q.size/4) { // losses in one place, not here and there
				q.drop(chunk)
				return
			}
			q.data, q.lost, room = append(q.data, note...), 0, room-len(note)
		}
		if len(chunk) <= room {
			q.data = append(q.data, chunk...)
			q.midLine = chunk[len(chunk)-1] != '\n'
			return
		}
		whole := bytes.LastIndexByte(chunk[:room], '\n') + 1
		if whole > 0 {
			q.data, q.midLine = append(q.data, chunk[:whole]...), false
		}
		q.drop(chunk[whole:])
		return
	}
}

// drop counts the lines of a chunk that begins where one does, or in the midst of one that is taken in so far.
func (q *queue) drop(chunk []byte) {
	lines := uint64(bytes.Count(chunk, []byte("\n")))
	if chunk[len(chunk)-1] != '\n' {
		lines++
		q.cutting = true
	}
	if q.midLine { // what is there of it goes with it, or, when it is on its way to the file, gets an end
		if end := bytes.LastIndexByte(q.data, '\n') + 1; end > 0 {
			q.data = q.data[:end]
		} else {
			q.data = append(q.data, '\n')
		}
		q.midLine = false
	}
	q.lost += lines
	q.total += lines
	q.because = q.fault
}

// note is the line that tells of those that are missing. The caller holds mu.
func (q *queue) note() string {
	why := "the file was slower than the program"
	if q.because != nil {
		why = q.because.Error()
	}
	lines := "lines"
	if q.lost == 1 {
		lines = "line"
	}
	return fmt.Sprintf("understudy: %d %s lost: %s\n", q.lost, lines, why)
}

// next gives what is to be written, and takes the buffer of the previous batch for what comes meanwhile. false: it is over.
func (q *queue) next(previous []byte) ([]byte, bool) {
	for {
		q.mu.Lock()
		if len(q.data) == 0 && q.lost > 0 && q.fault == nil {
			q.data = append(q.data, q.note()...)
			q.lost = 0
		}
		batch, closed := q.data, q.closed
		if len(batch) > 0 {
			q.data = previous[:0]
			q.stalled = false
		}
		q.mu.Unlock()
		if len(batch) > 0 {
			wait.Poke(q.room)
			return batch, true
		}
		if closed {
			return nil, false
		}
		select {
		case <-q.more:
		case <-time.After(idle):
			previous = nil
			q.giveBack()
			<-q.more
		}
	}
}

// remaining takes out all that is to be written, and tells of what was lost.
func (q *queue) remaining() []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	data := q.data
	if q.lost > 0 {
		data = append(data, q.note()...)
	}
	q.data, q.lost = nil, 0
	return data
}

// restore puts back what another queue had remaining. It is the first thing that is put in.
func (q *queue) restore(data []byte) {
	q.data = data
	q.midLine = data[len(data)-1] != '\n'
	wait.Poke(q.more)
}

// giveBack frees what a burst took.
func (q *queue) giveBack() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.data) == 0 {
		q.data = nil
	}
}

// failing sets why nothing can be written, nil when it can again.
func (q *queue) failing(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.fault = err
	wait.Poke(q.room)
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	wait.Poke(q.more)
}
