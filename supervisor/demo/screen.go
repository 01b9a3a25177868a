package demo

import (
	"fmt"
	"io"
	"strings"
	"sync"
)

// screen prints lines that stay, and below them, on a terminal, a picture that is drawn over itself.
type screen struct {
	out   io.Writer
	width func() int // of the terminal; 0: it is none

	mu      sync.Mutex // guards the fields below
	picture []string
}

func (s *screen) live() bool { return s.width() > 0 }

// say prints a line that stays.
func (s *screen) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	s.back(&b)
	for line := range strings.SplitSeq(fmt.Sprintf(format, args...), "\n") {
		b.WriteString(line + s.clear() + "\n")
	}
	s.paint(&b)
	_, _ = io.WriteString(s.out, b.String())
}

// draw replaces the picture.
func (s *screen) draw(picture []string) {
	if !s.live() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	s.back(&b)
	s.picture = picture
	s.paint(&b)
	_, _ = io.WriteString(s.out, b.String())
}

// back goes to the picture's first line.
func (s *screen) back(b *strings.Builder) {
	if len(s.picture) > 0 {
		fmt.Fprintf(b, "\x1b[%dA\r", len(s.picture))
	}
}

func (s *screen) paint(b *strings.Builder) {
	for _, line := range s.picture {
		b.WriteString(line + s.clear() + "\n")
	}
	if s.live() {
		b.WriteString("\x1b[J")
	}
}

func (s *screen) clear() string {
	if s.live() {
		return "\x1b[K"
	}
	return ""
}
