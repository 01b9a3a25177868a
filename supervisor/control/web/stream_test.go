package web

import (
	"runtime"
	"strings"
	"testing"
)

// Five hundred watchers may come back to far behind, and then take nothing: each would hold what it was to be sent.
func TestWhatAWatcherMissedIsNotCopiedForIt(t *testing.T) {
	s := newStream()
	events := make([]event, mostEvents)
	for i := range events {
		events[i] = event{"service", strings.Repeat("x", 1000)}
	}
	s.publish("whole", events...)
	behind := place{birth: s.birth, number: 1}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	news, now, _ := s.after(behind)
	runtime.ReadMemStats(&after)
	if len(news) != mostEvents-1 || now.number != mostEvents {
		t.Errorf("%d events, up to %d", len(news), now.number)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 100<<10 {
		t.Errorf("%d bytes for one watcher", took)
	}
	s.publish("whole", events[0])
	if more, _, _ := s.after(now); len(more) != 1 || len(news) != mostEvents-1 {
		t.Errorf("%d events more", len(more))
	}
}
