package web

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"understudy/supervisor/printable"
	"understudy/supervisor/wait"
)

// mostEvents is how far a watcher may be behind. One that is further starts anew with the whole status.
const mostEvents = 2048

// stream is what has happened of late, ready to be sent: all watchers are sent the same bytes.
type stream struct {
	watchers atomic.Int64
	wanted   chan struct{} // capacity 1: something may have changed, or somebody watches

	mu       sync.Mutex // guards the fields below
	birth    string     // of the numbering: no event of another one follows on these
	events   [][]byte
	newest   uint64        // number of the last event
	whole    []byte        // the whole status as of newest; nil: not known
	trouble  string        // why it is not
	onChange chan struct{} // closed, and replaced, at each change
}

func newStream() *stream {
	return &stream{wanted: make(chan struct{}, 1), onChange: make(chan struct{})}
}

func (s *stream) poke() { wait.Poke(s.wanted) }

// place is how far a watcher has come.
type place struct {
	birth  string
	number uint64
	told   string // the trouble it knows of
}

// parsePlace reads Last-Event-ID.
func parsePlace(id string) place {
	birth, number, _ := strings.Cut(id, "-")
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return place{}
	}
	return place{birth: birth, number: n}
}

// render writes one event as it goes over the wire.
func render(id, kind string, data any) []byte {
	text, err := json.Marshal(data)
	if err != nil {
		text, _ = json.Marshal(map[string]string{"error": err.Error()})
	}
	var b bytes.Buffer
	if id != "" {
		fmt.Fprintf(&b, "id: %s\n", id)
	}
	fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", kind, printable.JSON(text))
	return b.Bytes()
}

func (s *stream) id(number uint64) string { return s.birth + "-" + strconv.FormatUint(number, 10) }

// event is a kind and its data.
type event struct {
	kind string
	data any
}

// publish adds events, after which the status as a whole is this one.
func (s *stream) publish(whole any, events ...event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.whole == nil {
		s.birth, s.events, s.newest = strings.ToLower(rand.Text()[:10]), nil, 0
	}
	for _, e := range events {
		s.newest++
		s.events = append(s.events, render(s.id(s.newest), e.kind, e.data))
	}
	if over := len(s.events) - mostEvents; over > 0 {
		s.events = append([][]byte(nil), s.events[over:]...)
	}
	s.whole, s.trouble = render(s.id(s.newest), "status", whole), ""
	s.changed()
}

// fail says why the status is not known. Watchers keep what they have.
func (s *stream) fail(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trouble != why {
		s.trouble = why
		s.changed()
	}
}

// failing tells whether the status is not known now.
func (s *stream) failing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trouble != ""
}

// forget drops all: nobody looks at what happens from now on.
func (s *stream) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.whole, s.events, s.trouble = nil, nil, ""
}

func (s *stream) changed() {
	close(s.onChange)
	s.onChange = make(chan struct{})
}

// after gives what a watcher at a place does not know yet, and what to wait for when that is nothing. The texts are not copied: of
// watchers that take nothing there may be many.
func (s *stream) after(p place) (news [][]byte, now place, more <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trouble != p.told {
		news = append(news, render("", "trouble", map[string]string{"error": s.trouble})) // without a text: it is over
		p.told = s.trouble
	}
	if s.whole == nil {
		return news, p, s.onChange
	}
	first := s.newest - uint64(len(s.events)) // what comes before the oldest event kept
	switch {
	case p.birth != s.birth, p.number < first, p.number > s.newest:
		news = append(news, s.whole)
	default:
		news = append(news, s.events[p.number-first:]...)
	}
	p.birth, p.number = s.birth, s.newest
	return news, p, s.onChange
}
