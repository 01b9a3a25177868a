package control

import (
	"fmt"
	"slices"
	"strings"

	"understudy/election"
)

// looks are what has to be true of a record's effects before an operator confirms the death of its program: at its host, so that a host
// without power is enough, and elsewhere, since nothing of that ends with the host.
func looks(e election.Effects) (there, elsewhere []string) {
	for _, name := range e.Union() {
		l := e.Look.To(name)
		var words string
		switch {
		case l.Address != "":
			words = l.Address + " is not set there"
		case l.Mount != "":
			words = fmt.Sprintf("%s (%s) is not mounted there", l.Mount, name)
		case l.Undo != "":
			words = fmt.Sprintf("what %s did has been undone (by hand, for example with `%s`)", name, l.Undo)
		default:
			words = fmt.Sprintf("what %s did has been undone", name)
		}
		if slices.Contains(e.Survive, name) {
			elsewhere = append(elsewhere, words)
		} else {
			there = append(there, words)
		}
	}
	return there, elsewhere
}

// check tells an operator what to look at before a confirmation.
func (f *FencingStatus) check() string {
	there, elsewhere := looks(f.effects)
	words := fmt.Sprintf("Check %s first: it is off, or no process of the program is left there", f.Node)
	if len(there) > 0 {
		words += ", and " + strings.Join(there, ", and ")
	}
	words += "."
	if len(elsewhere) > 0 {
		words += fmt.Sprintf(" Even if it is off: %s. No boot of it undoes that.", strings.Join(elsewhere, ", and "))
	}
	return words + " If you are wrong, two copies run"
}
