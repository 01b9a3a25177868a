// Package store is shared storage that refuses old fencing tokens. It keeps a journal of every write that it took or refused.
package store

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"

	"understudy/supervisor/testbed/kit/tick"
)

// Verdict is what the store says to a write.
type Verdict string

// The verdicts.
const (
	Taken  Verdict = "taken"
	Again  Verdict = "again"  // taken before: its acknowledgement was lost, or it was sent twice and one came late
	Old    Verdict = "old"    // its token is lower than one seen before
	Broken Verdict = "broken" // a write before it is missing: what was acknowledged is lost
)

// Write is one line of the journal: the write number N of a run that holds a token.
type Write struct {
	At      int64 // CLOCK_MONOTONIC
	Verdict Verdict
	Service string
	Token   int64
	Run     string
	N       int64
}

func (w Write) line() string {
	return fmt.Sprintf("%d %s %s %d %s %d\n", w.At, w.Verdict, w.Service, w.Token, w.Run, w.N)
}

// Store serves any number of clients.
type Store struct {
	journal io.Writer

	mu      sync.Mutex // guards the fields below
	highest map[string]int64
	last    map[string]int64 // write of a run
}

// New makes an empty store.
func New(journal io.Writer) *Store {
	return &Store{journal: journal, highest: map[string]int64{}, last: map[string]int64{}}
}

// Serve answers connections until the listener is closed.
func (s *Store) Serve(l net.Listener) error {
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go s.answer(conn)
	}
}

func (s *Store) answer(conn net.Conn) {
	defer conn.Close()
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		var w Write
		if _, err := fmt.Sscanf(lines.Text(), "%s %d %s %d", &w.Service, &w.Token, &w.Run, &w.N); err != nil {
			return
		}
		verdict, err := s.take(w)
		if err != nil {
			return
		}
		if _, err := fmt.Fprintln(conn, verdict); err != nil {
			return
		}
	}
}

// take decides, and has the journal say so before anybody is told.
func (s *Store) take(w Write) (Verdict, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.last[w.Run]
	switch {
	case w.Token < s.highest[w.Service]:
		w.Verdict = Old
	case w.N <= last:
		w.Verdict = Again
	case w.N != last+1:
		w.Verdict = Broken
	default:
		w.Verdict = Taken
	}
	w.At = tick.Now()
	if _, err := io.WriteString(s.journal, w.line()); err != nil {
		return "", fmt.Errorf("journal: %w", err)
	}
	if w.Verdict == Taken {
		s.highest[w.Service], s.last[w.Run] = w.Token, w.N
	}
	return w.Verdict, nil
}

// ReadJournal reads what a store wrote.
func ReadJournal(path string) ([]Write, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []Write
	for line := range strings.Lines(string(text)) {
		var w Write
		if _, err := fmt.Sscanf(line, "%d %s %s %d %s %d", &w.At, &w.Verdict, &w.Service, &w.Token, &w.Run, &w.N); err != nil {
			return nil, fmt.Errorf("journal line %d: %w", len(all)+1, err)
		}
		all = append(all, w)
	}
	return all, nil
}
