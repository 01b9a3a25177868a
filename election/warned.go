package election

import (
	"fmt"
	"strings"
	"unicode"
)

// The limits of the warnings: each heartbeat writes them all again. A warning
// ends with the command to type, behind names of files that may be long.
const (
	mostWarnings    = 8
	longestWarning  = 600
	longestTogether = 2400
)

// Bounded shortens a list of warnings to the size that nodes write to nodes/<node>, and accept from there: a stranger may have
// written it. Each is one printable line.
func Bounded(warnings []string) []string {
	var list []string
	length := 0
	for i, w := range warnings {
		length += min(len(w), longestWarning)
		if i == mostWarnings || length > longestTogether {
			return append(list, fmt.Sprintf("and %d more: understudy check shows all", len(warnings)-i))
		}
		list = append(list, Line(w))
	}
	return list
}

// Line shortens a text that a node shows to others to one printable line, as it is written and accepted.
func Line(text string) string {
	if len(text) > longestWarning {
		text = text[:longestWarning] + "..."
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) && r != unicode.ReplacementChar {
			return r
		}
		return '?'
	}, text)
}

// eachLine does that to each text of a list.
func eachLine(list []string) {
	for i, text := range list {
		list[i] = Line(text)
	}
}
