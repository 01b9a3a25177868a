// Package loglimit keeps strangers from filling the log.
package loglimit

import (
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// mostNamed is how many sources a line names.
const mostNamed = 8

// Line is a warning that strangers can cause as often as they want. The first one is logged at once, and then one in each window, which
// tells how many were left out and where from. It may be used by several goroutines.
type Line struct {
	Log    hclog.Logger
	Words  string
	Window time.Duration

	mu     sync.Mutex // guards the fields below
	until  time.Time  // nothing is logged before
	unsaid int
	from   []string
}

// Say logs the line with its facts, or counts it.
func (l *Line) Say(from string, facts ...any) {
	l.mu.Lock()
	now := time.Now()
	if now.Before(l.until) {
		l.unsaid++
		if !slices.Contains(l.from, from) && len(l.from) < mostNamed {
			l.from = append(l.from, from)
		}
		l.mu.Unlock()
		return
	}
	facts = append([]any{"from", from}, append(facts, l.others()...)...)
	l.until = now.Add(l.Window)
	l.mu.Unlock()
	l.Log.Warn(l.Words, facts...)
}

// others tells what was left out, once. The caller holds mu.
func (l *Line) others() (facts []any) {
	if l.unsaid > 0 {
		facts = []any{"others_before", l.unsaid, "from_others", l.from}
	}
	l.unsaid, l.from = 0, nil
	return facts
}

// Tell logs what was left out of a window that is over.
func (l *Line) Tell() { l.tell(false) }

// End logs all that was left out.
func (l *Line) End() { l.tell(true) }

func (l *Line) tell(all bool) {
	l.mu.Lock()
	now := time.Now()
	if l.unsaid == 0 || !all && now.Before(l.until) {
		l.mu.Unlock()
		return
	}
	facts := l.others()
	l.until = now.Add(l.Window)
	l.mu.Unlock()
	l.Log.Warn(l.Words, facts...)
}
