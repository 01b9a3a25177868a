package control

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"understudy/election"
)

// CopyStatus is a node's copy of a replicated service.
type CopyStatus struct {
	Node  string `json:"node"`
	Is    string `json:"is"`            // primary, follower, or unknown
	Why   string `json:"why,omitempty"` // that is not known, or it has no position
	Words string `json:"words"`         // all of it, for people
	// Promotion is the token of the newest promotion whose data it has; 0: of none. Toward is the one that it follows, if it does not have
	// that one's data yet.
	Promotion int64                 `json:"promotion"`
	Toward    int64                 `json:"toward,omitempty"`
	Position  *uint64               `json:"position"`               // the newest that it has told
	Asked     *time.Time            `json:"position_at,omitempty"`  // when it was asked
	Behind    *uint64               `json:"behind,omitempty"`       // the primary's newest position; nil: not known
	Sees      *election.SeenPrimary `json:"sees_primary,omitempty"` // nil: it does not say
	Same      bool                  `json:"same,omitempty"`         // it cannot tell its position, and has lost nothing since it did
}

// What a copy is.
const (
	CopyPrimary  = "primary"
	CopyFollower = "follower"
	CopyUnknown  = "unknown"
)

// NothingReported is why the copy of a node that is away does not count.
const NothingReported = "it has reported nothing"

// oldPosition is after how long the age of a position is worth a word.
const oldPosition = 10 * time.Second

// copiesOf describes the copies of a service by what their nodes have told of them, and by the heartbeats, the primary first.
func copiesOf(v ServiceStatus, told map[string]election.CopyReport, nodes []NodeStatus, now time.Time) (all []CopyStatus) {
	if len(told)+len(v.Known) == 0 {
		return nil
	}
	at := map[string]election.At{}
	for _, n := range nodes {
		if said, ok := n.At[v.Service]; ok {
			at[n.Node] = said
		}
	}
	names := slices.Concat(names(v.Members), slices.Collect(maps.Keys(told)), v.Known)
	slices.Sort(names)
	names = slices.Compact(names)
	primary, known := at[v.Active]
	known = known && primary.Token == v.Token && v.Active != ""
	for _, node := range names {
		one, ok := told[node]
		c := CopyStatus{Node: node, Is: one.Role, Why: one.Why, Promotion: one.Followed, Toward: one.Toward}
		switch {
		case !ok:
			c.Is, c.Why = CopyUnknown, NothingReported
		case one.Promoted != 0 && one.Promoted == v.Token && node == v.Active:
			c.Is, c.Why, c.Promotion, c.Toward = CopyPrimary, "", v.Token, 0
		case c.Is == "":
			c.Is = CopyUnknown
		}
		if said, ok := at[node]; ok && said.Token == c.Promotion {
			c.Position, c.Asked = &said.Position, when(said.Time)
			if known && c.Is != CopyPrimary && said.Token == v.Token {
				behind := primary.Position - min(primary.Position, said.Position)
				c.Behind = &behind
			}
		}
		c.Same = v.Active == "" && one.Same
		if v.Active == "" && one.Position != nil { // asked since no copy is promoted
			c.Position, c.Asked = one.Position, nil
		} else if c.Same {
			c.Position, c.Asked = nil, nil
			if one.Had != 0 {
				c.Position = &one.Had
			}
		}
		if one.Sees != nil && one.Sees.Token == v.Token && c.Is != CopyPrimary {
			c.Sees = one.Sees
		}
		c.Words = c.words(v, now)
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b CopyStatus) int {
		return cmp.Or(-cmp.Compare(first(a), first(b)), strings.Compare(a.Node, b.Node))
	})
	return all
}

func first(c CopyStatus) int {
	if c.Is == CopyPrimary {
		return 1
	}
	return 0
}

// words are all that is known, but for what goes without saying.
func (c CopyStatus) words(v ServiceStatus, now time.Time) string {
	parts := []string{c.Is}
	if c.Why != "" {
		parts[0] += " (" + c.Why + ")"
	}
	switch {
	case c.Toward != 0:
		parts = append(parts, fmt.Sprintf("does not have the data of promotion %d yet", c.Toward))
	case c.Promotion == 0 && c.Is != CopyUnknown:
		parts = append(parts, "has followed no promotion")
	case c.Promotion != v.Token && c.Promotion != 0:
		parts = append(parts, fmt.Sprintf("data of promotion %d", c.Promotion))
	}
	if c.Position != nil {
		text := fmt.Sprintf("position %d", *c.Position)
		if v.Active == "" {
			text += noData(*c.Position)
		}
		if c.Asked != nil && now.Sub(*c.Asked) > oldPosition {
			text += fmt.Sprintf(" %v ago", now.Sub(*c.Asked).Round(time.Second))
		}
		parts = append(parts, text)
		if c.Behind != nil {
			parts = append(parts, fmt.Sprintf("%d behind", *c.Behind))
		}
	}
	if c.Same {
		parts = append(parts, "has lost nothing")
	}
	switch {
	case c.Sees == nil:
	case c.Sees.Well:
		parts = append(parts, "reaches the primary")
	default:
		parts = append(parts, "does not reach the primary ("+c.Sees.Why+")")
	}
	return strings.Join(parts, ", ")
}

// noData is what a position of 0 means.
func noData(position uint64) string {
	if position == 0 {
		return " (no data)"
	}
	return ""
}

// PositionAge is how old the primary's newest position is; false: there is none.
func (s ServiceStatus) PositionAge(now time.Time) (time.Duration, bool) {
	for _, c := range s.Copies {
		if c.Is == CopyPrimary && c.Asked != nil {
			return max(now.Sub(*c.Asked), 0), true
		}
	}
	return 0, false
}
