package web

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

const (
	hushFor   = 10 * time.Second // one line in so long: strangers do not fill the log
	mostNamed = 8                // addresses in a line
)

// hush logs what strangers can bring about as often as they want: the first time at once, and then one line a window, which tells
// how often it was and from where.
type hush struct {
	log   hclog.Logger
	words string

	mu     sync.Mutex // guards what follows
	until  time.Time  // nothing is logged before
	unsaid int
	from   []string
}

func (h *hush) say(from string, facts ...any) {
	h.mu.Lock()
	now := time.Now()
	if now.Before(h.until) {
		h.unsaid++
		if !slices.Contains(h.from, from) && len(h.from) < mostNamed {
			h.from = append(h.from, from)
		}
		h.mu.Unlock()
		return
	}
	if h.unsaid > 0 {
		facts = append(facts, "others_before", h.unsaid, "from_others", h.from)
	}
	h.unsaid, h.from, h.until = 0, nil, now.Add(hushFor)
	h.mu.Unlock()
	h.log.Warn(h.words, append([]any{"from", from}, facts...)...)
}

// tell logs what was not logged in the window that is over.
func (h *hush) tell() {
	h.mu.Lock()
	unsaid, from := h.unsaid, h.from
	if unsaid == 0 || time.Now().Before(h.until) {
		h.mu.Unlock()
		return
	}
	h.unsaid, h.from, h.until = 0, nil, time.Now().Add(hushFor)
	h.mu.Unlock()
	h.log.Warn(h.words, "others_before", unsaid, "from_others", from)
}

// tellAll tells what was not logged, until ctx ends.
func (s *Server) tellAll(ctx context.Context) {
	tick := time.NewTicker(hushFor / 2)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
		for _, h := range s.hushes() {
			h.tell()
		}
	}
}

func (s *Server) hushes() []*hush {
	return []*hush{&s.crowded, &s.wrong, &s.misnamed, &s.unreadable, &s.muttered}
}

// mutter takes what net/http logs of connections, a line for each that fails.
type mutter struct{ *hush }

func (m mutter) Write(p []byte) (int, error) {
	const longest = 200
	text := p
	if len(text) > longest {
		text = text[:longest]
	}
	m.say("net/http", "error", string(text))
	return len(p), nil
}
