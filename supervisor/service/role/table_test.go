package role

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// The table that a reader finds is the machine that decides.
func TestTheTableInTheDocumentIsTheMachine(t *testing.T) {
	text, err := os.ReadFile("../../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "<!-- roles: begin -->\n")
	there, _, ok := strings.Cut(rest, "<!-- roles: end -->")
	if want := table(); !ok || strings.TrimSpace(there) != strings.TrimSpace(want) {
		t.Errorf("docs/architecture.md has another table than this:\n%s", want)
	}
}

// reach calls see for every step that can be taken from the start, or from a term that was handed over.
func reach(see func(was State, e Event, next State, err error)) {
	seen := map[State]bool{}
	var walk func(State)
	walk = func(s State) {
		if seen[s] {
			return
		}
		seen[s] = true
		for _, e := range events() {
			next, err := Step(s, e)
			see(s, e, next, err)
			if err == nil {
				walk(next)
			}
		}
	}
	walk(State{})
	walk(State{Carried: true})
}

// events are all events that the machine tells apart.
func events() (all []Event) {
	for k := range Kinds {
		switch k {
		case Joined:
			all = append(all, Event{Kind: k}, Event{Kind: k, DataLost: true})
		case PreviousAlive:
			all = append(all, Event{Kind: k}, Event{Kind: k, BackOffUntilProof: true})
		case HeldBack:
			all = append(all, Event{Kind: k, Obstacle: Paused}, Event{Kind: k, Obstacle: CannotStart})
		default:
			all = append(all, Event{Kind: k})
		}
	}
	return all
}

// table is the machine in Markdown: for each place, the events of its action, and the next places.
func table() string {
	leads := map[Place]map[EventKind][]Place{}
	reach(func(was State, e Event, next State, err error) {
		if err != nil {
			return
		}
		if leads[was.Place] == nil {
			leads[was.Place] = map[EventKind][]Place{}
		}
		if to := leads[was.Place]; !slices.Contains(to[e.Kind], next.Place) {
			to[e.Kind] = append(to[e.Kind], next.Place)
		}
	})
	var b strings.Builder
	b.WriteString("| place | role | next place: events |\n| --- | --- | --- |\n")
	for p := range Places {
		var roles, rows []string
		row := map[string]int{} // that of a next place
		reach(func(was State, _ Event, _ State, _ error) {
			if r := string(was.Role()); was.Place == p && !slices.Contains(roles, r) {
				roles = append(roles, r)
			}
		})
		slices.Sort(roles)
		for k := range Kinds {
			to := leads[p][k]
			if len(to) == 0 {
				continue
			}
			slices.Sort(to)
			var names []string
			for _, n := range to {
				names = append(names, n.String())
			}
			next := strings.Join(names, " or ")
			if i, ok := row[next]; ok {
				rows[i] += ", " + k.String()
				continue
			}
			row[next] = len(rows)
			rows = append(rows, next+": "+k.String())
		}
		fmt.Fprintf(&b, "| %v | %s | %s |\n", p, strings.Join(roles, ", "), strings.Join(rows, "; "))
	}
	return b.String()
}
