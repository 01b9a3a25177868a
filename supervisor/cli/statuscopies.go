package cli

import (
	"fmt"
	"time"

	"understudy/supervisor/control"
)

// copyLines tell of the copies of a replicated service.
func copyLines(to screen, v control.ServiceStatus, now time.Time) (lines []string) {
	if len(v.Copies) == 0 {
		return nil
	}
	head := "Copies:"
	if age, ok := v.PositionAge(now); ok {
		head = fmt.Sprintf("Copies, as of the primary's position %s ago:", brief(age))
	}
	lines = append(lines, note(to.width, head)...)
	for _, c := range v.Copies {
		colour := plain
		if c.Is == control.CopyUnknown || c.Why != "" || c.Toward != 0 || c.Sees != nil && !c.Sees.Well {
			colour = yellow
		}
		for i, line := range wrap(c.Node+": "+c.Words, to.width-6) {
			indent := "    "
			if i > 0 {
				indent += "  "
			}
			lines = append(lines, to.paintAll(colour, []string{indent + line})...)
		}
	}
	return lines
}
