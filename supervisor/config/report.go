package config

import (
	"fmt"
	"slices"
)

// report collects faults of a configuration, and likely mistakes.
type report struct {
	found, warnings []found
	where           *positions
	node            *Config  // the keys that are not of one service
	on              string   // the node that counts; "": what holds for all
	named           []string // the nodes for which the files have keys
	asks            bool     // whether that node, or the one that is wanted, has a fencing agent
}

// found is one entry of a report, wherever its keys came from.
type found struct {
	keys    []path // the first is the one to blame; the others take part
	onKey   bool   // it is the key itself that is wrong
	message string
	danger  bool // see Fault
}

// place is where a value stands that is checked. Each section of the file checks its own values, and reports to its place.
type place struct {
	*report
	keys []path // the first is the value's own; the others take part in its fault
}

// top is the place of a key that is not of one service.
func (r *report) top(keys ...string) place { return place{r, []path{keys}} }

func (p place) key(name string) place { return place{p.report, []path{p.keys[0].key(name)}} }
func (p place) item(i int) place      { return place{p.report, []path{p.keys[0].item(i)}} }

// and is for a fault that lies in several values together.
func (p place) and(others ...place) place {
	keys := slices.Clone(p.keys)
	for _, o := range others {
		keys = append(keys, o.keys...)
	}
	return place{p.report, keys}
}

// given reports whether a file says what stands here.
func (p place) given() bool { return p.where.given(p.keys[0]) }

func (p place) fault(format string, args ...any) {
	p.found = append(p.found, found{keys: p.keys, message: fmt.Sprintf(format, args...)})
}

// keyFault says that it is the key that is wrong, not its value.
func (p place) keyFault(message string) {
	p.found = append(p.found, found{keys: p.keys, onKey: true, message: message})
}

func (p place) warn(format string, args ...any) {
	p.warnings = append(p.warnings, found{keys: p.keys, message: fmt.Sprintf(format, args...)})
}

// danger is a doubt about what others may do, which log and status tell too.
func (p place) danger(format string, args ...any) {
	p.warnings = append(p.warnings, found{keys: p.keys, danger: true, message: fmt.Sprintf(format, args...)})
}
