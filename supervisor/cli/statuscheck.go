package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"understudy/election"
	"understudy/supervisor/control"
	"understudy/supervisor/printable"
)

// Exit codes of `status --check`, the worst last.
const (
	exitPaused    = 6
	exitAlone     = 7
	exitUnhealthy = 4
	exitDown      = 5
)

// checkStatus prints what is wrong, and returns the exit code of the worst service.
func checkStatus(w io.Writer, s control.Status, now time.Time) error {
	rank := map[int]int{0: 0, exitPaused: 1, exitAlone: 2, exitUnhealthy: 3, exitDown: 4}
	worst := 0
	if len(s.Services) == 0 {
		worst = exitDown
	}
	var text strings.Builder
	var alone []string
	for _, v := range s.Services {
		code, words := judged(v)
		if rank[code] > rank[worst] {
			worst = code
		}
		switch {
		case len(s.Services) > 1 && code == exitAlone &&
			!slices.ContainsFunc(v.Problems, func(f control.Problem) bool { return unfit(v, f) }):
			// The loss of one node can be that of the standby of all services.
			alone = append(alone, v.Service)
		case code != 0 || len(s.Services) == 1:
			fmt.Fprintln(&text, printable.Text(v.Service+": "+words))
		}
	}
	if len(alone) > 0 {
		fmt.Fprintln(&text, printable.Text("without a standby: "+firstOf(alone)))
	}
	for _, g := range s.Gone {
		fmt.Fprintln(&text, printable.Text(g.Words(now)))
	}
	if len(s.Services) != 1 {
		fmt.Fprintln(&text, total(s.Services))
	}
	if _, err := io.WriteString(w, text.String()); err != nil || worst == 0 {
		return err
	}
	return exitStatus(worst)
}

// judged is how a service is, as an exit code and in words.
func judged(v control.ServiceStatus) (code int, words string) {
	words = fmt.Sprintf("active on %s, ok", v.Active)
	for _, m := range v.Members {
		if m.Node == v.Active && m.Health != election.HealthOK {
			code, words = exitUnhealthy, fmt.Sprintf("active on %s, %s", v.Active, m.Health)
		}
	}
	switch {
	case v.Active == "" && v.Stopped:
		code, words = exitPaused, v.Order
	case v.Active == "":
		code, words = exitDown, "no node is active"
	case code == 0 && v.Paused:
		code, words = exitPaused, fmt.Sprintf("active on %s, paused", v.Active)
	}
	if code == 0 && faulty(v) {
		code, words = exitUnhealthy, "active on "+v.Active
	}
	if d := v.DrainedActive(); code == 0 && d != nil {
		return exitPaused, fmt.Sprintf("active on %s, which is %s", v.Active, d.Words)
	}
	if code == 0 && !v.HasStandby() {
		code, words = exitAlone, fmt.Sprintf("active on %s, ok", v.Active)
	}
	if code != 0 && len(v.Problems) > 0 {
		worst := v.Problems[0]
		for _, f := range v.Problems {
			if code == exitUnhealthy && f.Node == v.Active && v.Active != "" { // what it is unhealthy by, before what else is wrong
				worst = f
			}
		}
		if v.Active == "" { // it says that
			words = worst.What
		} else {
			words += ": " + worst.What
		}
		for _, f := range v.Problems {
			if f.What != worst.What && unfit(v, f) {
				words += " " + f.What
			}
		}
	}
	return code, words
}

// total counts services by how they are.
func total(services []control.ServiceStatus) string {
	counts, held := map[int]int{}, "paused"
	for _, v := range services {
		code, _ := judged(v)
		counts[code]++
		if code == exitPaused && !v.Paused {
			held = "paused or drained"
		}
	}
	text := count(len(services), "service") + ":"
	for _, part := range []struct {
		code int
		what string
	}{{exitDown, "active nowhere"}, {exitUnhealthy, "unhealthy"}, {exitAlone, "without a standby"}, {exitPaused, held},
		{0, "active and ok"}} {
		if n := counts[part.code]; n > 0 {
			text += fmt.Sprintf(" %d %s,", n, part.what)
		}
	}
	return strings.TrimRight(text, ":,") + "."
}
