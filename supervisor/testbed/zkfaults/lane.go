package zkfaults

import (
	"sync"
	"time"
)

// laneLimit is how many bytes may wait in a lane before its reader from the network has to wait as well.
const laneLimit = 8 << 20

// lane is one direction of a connection: frames in order, which can be held up or slowed down as a bad network would.
// What waits in a lane is as if it were on the wire; nothing is lost unless somebody asks for that.
type lane struct {
	mu       sync.Mutex // guards what follows
	changed  *sync.Cond
	items    []laneItem
	bytes    int
	blocked  bool          // cut: nothing comes out
	delay    time.Duration // each frame takes that long
	lost     bool          // new frames never come out, nor does the end
	finished bool          // nothing more will be put in
	gone     bool          // there is nobody at the far end
	aborted  bool          // over, at once
	taken    bool          // the frame that was popped last is being dealt with
	alarm    time.Time     // when somebody will look again
}

type laneItem struct {
	frame []byte
	due   time.Time
}

func newLane() *lane {
	l := &lane{}
	l.changed = sync.NewCond(&l.mu)
	return l
}

func (l *lane) set(change func(*lane)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(l)
	l.changed.Broadcast()
}

// push puts a frame in. It never waits.
func (l *lane) push(frame []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost || l.finished || l.aborted {
		return
	}
	l.items = append(l.items, laneItem{frame, time.Now().Add(l.delay)})
	l.bytes += len(frame)
	l.changed.Broadcast()
}

// pass has a frame dealt with by the caller when nothing is before it and nothing holds it up; else it puts it in.
func (l *lane) pass(frame []byte, do func(frame []byte)) {
	l.mu.Lock()
	straight := len(l.items) == 0 && !l.taken && !l.blocked && l.delay == 0 && !l.lost && !l.finished && !l.aborted
	l.mu.Unlock()
	if straight {
		do(frame)
		return
	}
	l.push(frame)
}

// room waits until the lane is not too full to push more, and tells whether that makes sense.
func (l *lane) room() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.bytes > laneLimit && !l.aborted {
		l.changed.Wait()
	}
	return !l.aborted
}

// pop takes the next frame out, waiting for it. False is the end.
func (l *lane) pop() ([]byte, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken = false
	for {
		if l.aborted || l.finished && l.gone && (l.blocked || l.lost) {
			return nil, false
		}
		if !l.blocked {
			if len(l.items) > 0 {
				if wait := time.Until(l.items[0].due); wait > 0 {
					l.wakeAt(l.items[0].due, wait)
				} else {
					item := l.items[0]
					l.items = l.items[1:]
					l.bytes -= len(item.frame)
					l.taken = true
					l.changed.Broadcast()
					return item.frame, true
				}
			} else if l.finished && !l.lost {
				return nil, false
			}
		}
		l.changed.Wait()
	}
}

func (l *lane) wakeAt(due time.Time, wait time.Duration) {
	if due.Equal(l.alarm) {
		return
	}
	l.alarm = due
	time.AfterFunc(wait, func() { l.set(func(*lane) {}) })
}

// open waits until the lane is not cut.
func (l *lane) open() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.blocked && !l.aborted {
		l.changed.Wait()
	}
}

func (l *lane) finish() { l.set(func(l *lane) { l.finished = true }) }
func (l *lane) lose()   { l.set(func(l *lane) { l.lost = true }) }
func (l *lane) leave()  { l.set(func(l *lane) { l.gone = true }) }
func (l *lane) abort()  { l.set(func(l *lane) { l.aborted = true; l.items = nil; l.bytes = 0 }) }

func (l *lane) condition(blocked bool, delay time.Duration) {
	l.set(func(l *lane) { l.blocked, l.delay = blocked, delay })
}
