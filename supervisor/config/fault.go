package config

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Fault is one thing wrong with a configuration. What came from flags has no file, line and column.
type Fault struct {
	File         string
	Line, Column int
	Key          string // the path of keys, as in services.redis.restart.delay
	Message      string
	Danger       bool // it lets others do something: the log and the status tell it, too
}

// String is "file:line:column: key: what is wrong", without the parts that are not known.
func (f Fault) String() string {
	var b strings.Builder
	if f.File != "" {
		b.WriteString(f.File)
		if f.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", f.Line, f.Column)
		}
		b.WriteString(": ")
	}
	if f.Key != "" {
		b.WriteString(f.Key + ": ")
	}
	b.WriteString(f.Message)
	return b.String()
}

// Faults is everything wrong with a configuration, in the order of the file.
type Faults []Fault

// Error is one fault a line.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.String()
	}
	return strings.Join(lines, "\n")
}

func (f Fault) compare(other Fault) int {
	return cmp.Or(
		cmp.Compare(f.Line, other.Line),
		cmp.Compare(f.Column, other.Column),
		cmp.Compare(f.Key, other.Key),
		cmp.Compare(f.Message, other.Message),
	)
}

// path is where a value is, from the top of the file. Items of a list are written "[0]".
type path []string

func (p path) key(name string) path { return append(slices.Clip(p), name) }
func (p path) item(i int) path      { return p.key("[" + strconv.Itoa(i) + "]") }

// id tells paths apart even where a name contains a dot.
func (p path) id() string { return strings.Join(p, "\x00") }

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_@:-]+$`)

// String is how a user would write the path; a name that would be misread is quoted.
func (p path) String() string {
	var b strings.Builder
	for _, name := range p {
		switch {
		case strings.HasPrefix(name, "["):
			b.WriteString(name)
			continue
		case b.Len() > 0:
			b.WriteByte('.')
		}
		if plainKey.MatchString(name) {
			b.WriteString(name)
		} else {
			b.WriteString(strconv.Quote(shorten(name)))
		}
	}
	return b.String()
}

// shorten keeps a message readable whatever somebody pasted into a file.
func shorten(text string) string {
	const most = 200 // a path is shown whole
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most]) + "..."
}
