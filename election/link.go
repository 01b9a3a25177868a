package election

import (
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// link is the session as the servers know it: its id, and when they answered last.
type link struct {
	now func() time.Duration

	mu       sync.Mutex // guards the fields below
	id       int64
	password []byte
	resumed  chan struct{} // closed and replaced at each (re)connect
	heard    time.Duration // when a call was last answered
	since    time.Time     // of the newest (re)connect
}

func newLink(now func() time.Duration) link { return link{now: now, resumed: make(chan struct{})} }

// ID is the session's id; 0: no server has granted it yet.
func (l *link) ID() int64 {
	id, _ := l.identity()
	return id
}

func (l *link) identity() (id int64, password []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.id, l.password
}

func (l *link) identify(id int64, password []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.id, l.password = id, password
}

// Resumed returns a channel that is closed at the next (re)connect.
func (l *link) Resumed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.resumed
}

// noticed is called by zk's client; it must not block.
func (l *link) noticed(ev zk.Event) {
	if ev.Type != zk.EventSession {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if ev.State != zk.StateHasSession {
		return
	}
	close(l.resumed)
	l.resumed = make(chan struct{})
	l.since = time.Now()
}

// connected is when the present connection began.
func (l *link) connected() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.since
}

// answered notes that a server has answered a call.
func (l *link) answered() {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard = now
}

// silence is how long no call has been answered.
func (l *link) silence() time.Duration {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	return now - l.heard
}
