package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"understudy/supervisor/control"
	"understudy/supervisor/printable"
)

// The exit codes of `status --check`.
var exitCodes = map[control.Verdict]int{control.Held: 6, control.Alone: 7, control.Unhealthy: 4, control.Down: 5}

// checkStatus prints what is wrong, and returns the exit code of the worst service.
func checkStatus(w io.Writer, s control.Status, now time.Time) error {
	worst := control.Healthy
	if len(s.Services) == 0 {
		worst = control.Down
	}
	var text strings.Builder
	var alone, order []string
	alike := map[string][]string{}
	for _, v := range s.Services {
		verdict, words := v.Judge()
		worst = max(worst, verdict)
		switch {
		case len(s.Services) > 1 && verdict == control.Alone && !slices.ContainsFunc(v.Problems, v.Unfit):
			// The loss of one node can be that of the standby of all services.
			alone = append(alone, v.Service)
		case verdict > control.Done || len(s.Services) == 1:
			if alike[words] == nil {
				order = append(order, words)
			}
			alike[words] = append(alike[words], v.Service)
		}
	}
	for _, words := range order {
		names := alike[words]
		if len(names) > mostNamed {
			names = []string{firstOf(names)}
		}
		for _, name := range names {
			fmt.Fprintln(&text, printable.Text(name+": "+words))
		}
	}
	if len(alone) > 0 {
		fmt.Fprintln(&text, printable.Text("without a standby: "+firstOf(alone)))
	}
	for _, g := range s.Gone {
		fmt.Fprintln(&text, printable.Text(g.Words(now)))
	}
	for _, n := range s.Nodes {
		if n.Fault != "" && !n.Restart {
			why, words := refused(n)
			fmt.Fprintln(&text, printable.Text(why+" "+strings.Join(words, " ")))
		}
		for _, words := range unheard(n) {
			fmt.Fprintln(&text, printable.Text(words))
		}
	}
	for _, words := range otherFiles(s.Services) {
		fmt.Fprintln(&text, printable.Text(words))
	}
	if len(s.Services) != 1 {
		fmt.Fprintln(&text, total(s.Services))
	}
	if len(s.Services)+len(s.NodeNames()) == 0 {
		fmt.Fprintln(&text, "Nothing of Understudy is below "+s.Where+": is --root right?")
	}
	if _, err := io.WriteString(w, text.String()); err != nil || worst <= control.Done {
		return err
	}
	return exitStatus(exitCodes[worst])
}

// total counts services by how they are.
func total(services []control.ServiceStatus) string {
	counts, held := map[control.Verdict]int{}, "paused"
	for _, v := range services {
		verdict, _ := v.Judge()
		counts[verdict]++
		if verdict == control.Held && !v.Paused {
			held = "paused or drained"
		}
	}
	text := count(len(services), "service") + ":"
	for _, part := range []struct {
		control.Verdict
		what string
	}{
		{control.Down, "active nowhere"}, {control.Unhealthy, "unhealthy"}, {control.Alone, "without a standby"}, {control.Held, held},
		{control.Healthy, "active and ok"}, {control.Done, "done"},
	} {
		if n := counts[part.Verdict]; n > 0 {
			text += fmt.Sprintf(" %d %s,", n, part.what)
		}
	}
	return strings.TrimRight(text, ":,") + "."
}
