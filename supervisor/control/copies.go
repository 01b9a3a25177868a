package control

import (
	"cmp"
	"context"
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

// notFollowing are the other nodes in the live set, if the copy of none of them has the primary's data: it acknowledges no write then.
func (s ServiceStatus) notFollowing() []string {
	follows := func(c CopyStatus) bool {
		return c.Node != s.Active && c.Is == CopyFollower && c.Promotion == s.Token && c.Toward == 0 && slices.Contains(s.Live, c.Node)
	}
	if s.Active == "" || slices.ContainsFunc(s.Copies, follows) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.Live), func(node string) bool { return node == s.Active })
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
	if len(v.Live) > 0 && !slices.Contains(v.Live, c.Node) {
		parts = append(parts, "not in the live set")
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

// begins reports whether a service may begin with an operator's choice of a copy. An empty one never wins over one with data.
func begins(h SwitchoverRequest, copies map[string]election.CopyReport, first bool) error {
	mine := copies[h.To].Position
	switch {
	case copies == nil:
		return refused("%s is not replicated: --first is for the first promotion of a copy", h.Service)
	case !first:
		return refused("a copy of %s was promoted before: --first is for the first promotion (--force promotes NODE whatever data it has)",
			h.Service)
	case mine == nil || *mine != 0:
		return nil
	}
	for _, node := range slices.Sorted(maps.Keys(copies)) {
		if one := copies[node]; one.Same || one.Position != nil && *one.Position != 0 {
			return refused("the copy on %s has no data, and that on %s has some (--force promotes it anyway)", h.To, node)
		}
	}
	return nil
}

// copies are what nodes say of their copies of a replicated service; nil: it is not one. live are the nodes whose copies alone can be
// promoted; nil: all can. first: none was promoted before.
func (c *Cluster) copies(ctx context.Context, service string) (said map[string]election.CopyReport, live []string, first bool, err error) {
	path := election.Paths{Root: c.root, Service: service}.Copies()
	folder, err := c.read(ctx, path)
	if err != nil || !folder.exists {
		return nil, nil, false, err
	}
	newest, unread := election.ReadPromotion(folder.data)
	if unread == nil {
		live, first = newest.Live, newest.Token == 0
	}
	said = map[string]election.CopyReport{}
	_, err = list(ctx, c.znodes, path, func(node string, n znode) election.CopyReport {
		about, err := election.ReadCopyReport(node, n.data)
		if err != nil {
			about.Why = err.Error()
		}
		said[node] = about
		return about
	})
	return said, live, first, err
}

// risk says what is lost when a copy is promoted whatever data it has.
func risk(v ServiceStatus, to string, copies map[string]election.CopyReport) string {
	if v.Active != "" {
		return fmt.Sprintf("%s is promoted whatever data it has: writes of %s that it lacks are lost", to, v.Active)
	}
	var all []string
	nodes := slices.Concat(names(v.Members), v.Known)
	slices.Sort(nodes)
	for _, node := range slices.Compact(nodes) {
		all = append(all, node+" "+dataOf(copies[node]))
	}
	lacks := "is promoted whatever data it has"
	if len(v.Live) > 0 && !slices.Contains(v.Live, to) {
		lacks += ", and is not in the live set (" + strings.Join(v.Live, ", ") + ")"
	}
	return to + " " + lacks + ", and what only others have is lost: " + strings.Join(all, "; ")
}

// dataOf is what data a copy has, as its node says.
func dataOf(about election.CopyReport) string {
	of := ""
	if about.Followed != 0 {
		of = fmt.Sprintf(" of promotion %d", about.Followed)
	}
	switch {
	case about.Same && about.Had > 0:
		return fmt.Sprintf("had position %d%s, and has lost nothing", about.Had, of)
	case about.Same:
		return "has data" + of + ", and does not tell its position"
	case about.Position == nil && about.Had > 0:
		return fmt.Sprintf("has not reported its position, which was %d%s%s", about.Had, of, inBrackets(about.Why))
	case about.Position == nil:
		return "has not reported its position" + inBrackets(about.Why)
	case about.Toward != 0:
		return fmt.Sprintf("has position %d, and may lack data of promotion %d", *about.Position, about.Toward)
	}
	return fmt.Sprintf("has position %d%s%s", *about.Position, of, noData(*about.Position))
}

func inBrackets(why string) string {
	if why == "" {
		return ""
	}
	return " (" + why + ")"
}
