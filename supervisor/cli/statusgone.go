package cli

import (
	"fmt"
	"strings"
	"time"

	"understudy/supervisor/control"
)

// gone tells which nodes are missing, and what then has no standby.
func (to paper) gone(s control.Status, now time.Time) (lines []string) {
	for _, g := range s.Gone {
		text, do := g.Words(now), g.Forget()
		colour := plain
		if g.Bare > 0 {
			colour = yellow
			if !g.Stopped {
				text += " Its supervisor, host or network is down."
			}
		}
		if len(do.Words) > 0 {
			text += " If it does not come back:"
		}
		lines = append(lines, to.paintAll(colour, note(to.width, text))...)
		if len(do.Words) > 0 {
			lines = append(lines, command(to.width, withFlags(do, to.flags)...)...)
		}
	}
	return lines
}

// mostNamed is how many names one line has.
const mostNamed = 5

// firstOf are the first of some names, and how many more there are.
func firstOf(names []string) string {
	if len(names) <= mostNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNamed], ", "), len(names)-mostNamed)
}
