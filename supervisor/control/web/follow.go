package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"understudy/supervisor/printable"
	"understudy/supervisor/wait"
)

const (
	// pace is how often the cluster is looked at while somebody watches.
	pace = 500 * time.Millisecond
	// settling is how long a change here may take until ZooKeeper tells of it.
	settling = 80 * time.Millisecond
	// beat is how often a watcher hears something at least: what lies between takes a silent connection for a dead one.
	beat = 15 * time.Second
)

// stream is the newest status, ready to be sent. All watchers are sent the same bytes: of those that take nothing there may be many.
type stream struct {
	watchers atomic.Int64
	wanted   chan struct{} // capacity 1: something may have changed, or somebody watches

	mu       sync.Mutex    // guards the fields below
	news     [][]byte      // the status, and after it why there is no newer one
	onChange chan struct{} // closed, and replaced, at each change
}

func newStream() *stream {
	return &stream{wanted: make(chan struct{}, 1), onChange: make(chan struct{})}
}

func (s *stream) poke() { wait.Poke(s.wanted) }

func (s *stream) publish(news ...[]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.news = news
	close(s.onChange)
	s.onChange = make(chan struct{})
}

func (s *stream) newest() (news [][]byte, onChange <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.news, s.onChange
}

// follow publishes the status as it changes, while somebody watches.
func (s *Server) follow(ctx context.Context) {
	var known, status []byte // what the cluster was, and the event that says so
	trouble := ""
	for ctx.Err() == nil {
		if s.stream.watchers.Load() == 0 {
			known, status, trouble = nil, nil, ""
			s.stream.publish()
			select {
			case <-s.stream.wanted:
			case <-ctx.Done():
			}
			continue
		}
		changes := s.cfg.Board.changes()
		all, err := s.cluster.since(ctx, "", time.Now())
		now, _ := json.Marshal(all) // as showStatus does
		switch {
		case err != nil && err.Error() != trouble:
			trouble = err.Error()
			news := event("trouble", map[string]string{"error": trouble})
			if status != nil {
				s.stream.publish(status, news)
			} else {
				s.stream.publish(news)
			}
		case err == nil && (trouble != "" || !bytes.Equal(now, known)):
			known, status, trouble = now, event("status", s.whole(all)), ""
			s.stream.publish(status)
		}
		select {
		case <-changes:
			wait.For(ctx, settling)
		case <-s.stream.wanted:
		case <-time.After(pace):
		case <-ctx.Done():
		}
	}
}

// event is one as it goes over the wire.
func event(kind string, data any) []byte {
	text, err := json.Marshal(data)
	if err != nil {
		text, _ = json.Marshal(map[string]string{"error": err.Error()})
	}
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", kind, printable.JSON(text))
}

// watch sends events until the client goes. One that takes none for writePatience is dropped.
func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	s.stream.watchers.Add(1)
	defer s.stream.watchers.Add(-1)
	s.stream.poke()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would wait for more
	wire := http.NewResponseController(w)
	if err := wire.SetReadDeadline(time.Time{}); err != nil {
		return
	}
	send := func(texts ...[]byte) bool {
		if wire.SetWriteDeadline(time.Now().Add(writePatience)) != nil {
			return false
		}
		for _, text := range texts {
			if _, err := w.Write(text); err != nil {
				return false
			}
		}
		return wire.Flush() == nil
	}
	if r.Method == http.MethodHead || !send([]byte("retry: 1000\n\n")) {
		return
	}
	tick := time.NewTicker(beat)
	defer tick.Stop()
	news, more := s.stream.newest()
	for send(news...) {
		select {
		case <-more:
			news, more = s.stream.newest()
		case <-tick.C:
			news = [][]byte{[]byte(": still here\n\n")}
		case <-r.Context().Done():
			return
		}
	}
}
