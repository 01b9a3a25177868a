package web

import (
	"net/http"
	"time"
)

// beat is how often a watcher hears something at least: what lies between takes a silent connection for a dead one.
const beat = 15 * time.Second

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
		return wire.SetWriteDeadline(time.Now().Add(writePatience)) == nil && write(w, texts) && wire.Flush() == nil
	}
	if r.Method == http.MethodHead || !send([]byte("retry: 1000\n\n")) {
		return
	}
	at := parsePlace(r.Header.Get("Last-Event-ID"))
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		news, now, more := s.stream.after(at)
		at = now
		if len(news) > 0 && !send(news...) {
			return
		}
		select {
		case <-more:
		case <-tick.C:
			if !send([]byte(": still here\n\n")) {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

func write(w http.ResponseWriter, texts [][]byte) bool {
	for _, text := range texts {
		if _, err := w.Write(text); err != nil {
			return false
		}
	}
	return true
}
