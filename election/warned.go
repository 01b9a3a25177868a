package election

import (
	"fmt"
	"strings"
	"unicode"
)

// The limits of the warnings: each heartbeat writes them all again. A warning ends with the command to type, behind names of files that may be long.
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
		if len(w) > longestWarning {
			w = w[:longestWarning] + "..."
		}
		list = append(list, strings.Map(func(r rune) rune {
			if unicode.IsPrint(r) && r != unicode.ReplacementChar {
				return r
			}
			return '?'
		}, w))
	}
	return list
}
