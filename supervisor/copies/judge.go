package copies

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Told is what a node says of its copy.
type Told struct {
	Node     string
	Era      int64   // in which both tokens were given: they start again where ZooKeeper has lost its data
	Followed int64   // the token of the newest promotion whose data it has; 0: of none
	Toward   int64   // it was told to follow this promotion, and it is not known whether it has the data; 0: that is over
	Tied     bool    // it was told last to follow the copy that was promoted last: it may have followed that promotion on its own
	Position *uint64 // how far its data goes; nil: that is not known, which is not 0
	Same     bool    // its data goes at least that far: it has lost nothing, and cannot tell how much it has
	Led      bool    // it was the copy that was promoted as Followed: no other one has more of that promotion
	Empty    bool    // it has no data at all
	Why      string  // it has no position
	Stands   bool    // its node would take the lock
	Priority int
	Chosen   bool // an operator wants it
	Gives    bool // an operator wants any other one: it comes after those that have all its data
	Forced   bool // whatever data others have
	Saw      Lead // what its node has seen of another one's primary
}

// Lead is how far the data of a promoted copy went, as another node has seen it last.
type Lead struct {
	Node     string `json:"node,omitempty"` // "": none was seen
	Era      int64  `json:"era,omitempty"`
	Token    int64  `json:"token,omitempty"`
	Position uint64 `json:"position,omitempty"`
}

// Rules are what the config, and the cluster, ask of a promotion.
type Rules struct {
	Era      int64  // the present one
	Promoted int64  // the token of the newest promotion that there ever was; 0: there was none
	From     int    // so many copies must have told their position
	MaxLag   uint64 // how far behind the best one a copy may be
	// Live are the nodes whose copies acknowledge writes: any of these but one have all that was acknowledged. nil: that is not recorded.
	Live []string
}

// Need is how many copies must have told their position, where the config gives so many (0: it does not), and so many are listed. By
// default all but one have to. Before any promotion all that are listed have to (Judge), and one alone is not enough: others may be about
// to come, as after ZooKeeper has lost its data.
func Need(given, listed int, promoted int64) int {
	switch {
	case given > 0:
		return given
	case promoted == 0:
		return 2
	}
	return max(listed-1, 1)
}

// Verdict says who may be promoted.
type Verdict struct {
	Node   string // "": nobody
	Why    string // nobody, in words
	Best   string // the node that has the newest data, and does not stand: nobody else may be promoted
	Forced bool   // an operator has chosen it, whatever data others have
}

// counts reports whether a copy's position says anything. One that has followed no promotion has data of its own, and no place among the
// others, unless there was no promotion yet.
func (r Rules) counts(t Told) bool {
	return t.Position != nil && (t.Followed > 0 || t.Toward > 0 || r.Promoted == 0)
}

// fit reports whether it is known what data a copy has.
func (r Rules) fit(t Told) bool { return t.Toward == 0 || r.Promoted == 0 }

// tied reports whether a copy may have followed the newest promotion on its own.
func (r Rules) tied(t Told) bool { return t.Tied && t.Era == r.Era }

// mayHave is the newest promotion whose data a copy may have.
func (r Rules) mayHave(t Told) int64 {
	if !r.tied(t) {
		return t.Followed
	}
	return max(t.Followed, r.Promoted)
}

// mayBeNewer reports whether a copy may have data of another promotion that the best one lacks: it was about to follow that one, or did so
// while its node did not see it. Of two that may have done so, the position decides.
func (r Rules) mayBeNewer(t, best Told) bool {
	beyond := func(followed, bestHas int64) bool {
		return followed > 0 && cmp.Or(cmp.Compare(t.Era, best.Era), cmp.Compare(followed, bestHas), further(t, best)) > 0
	}
	return r.Promoted != 0 && t.Node != best.Node && (beyond(t.Toward, best.Followed) || r.tied(t) && beyond(r.Promoted, r.mayHave(best)))
}

// further compares how far two copies' data of one promotion may go.
func further(t, best Told) int {
	switch {
	case best.Led && best.Same:
		return -1
	case t.Same && !best.Led:
		return 1
	}
	return cmp.Compare(*t.Position, *best.Position)
}

// mayHaveMore reports whether a copy of the same promotion may have more data than the best one, because it cannot tell how much it has.
func mayHaveMore(t, best Told) bool {
	return t.Same && t.Node != best.Node && t.Era == best.Era && t.Followed == best.Followed && further(t, best) > 0
}

// lost says what a copy has lost of what it had when it was promoted last, as others have seen that; "": nothing that is known.
func lost(t Told, all []Told) string {
	var had Lead
	for _, o := range all {
		if s := o.Saw; s.Node == t.Node && s.Era == t.Era &&
			cmp.Or(cmp.Compare(s.Token, had.Token), cmp.Compare(s.Position, had.Position)) > 0 {
			had = s
		}
	}
	switch {
	case t.Position == nil || t.Toward != 0:
	case had.Token > t.Followed:
		return fmt.Sprintf("it has lost data: it was the primary as of promotion %d, and has nothing of that", had.Token)
	case had.Token == t.Followed && !t.Same && *t.Position < had.Position:
		return fmt.Sprintf("it has lost data: its position is %d, and was %d while it was the primary", *t.Position, had.Position)
	}
	return ""
}

// live are the nodes whose copies alone count; nil: all do. Where a copy has followed a newer promotion than the record's, that is of an
// older copy of ZooKeeper's data.
func (r Rules) live(all []Told) []string {
	newer := func(t Told) bool {
		return t.Era > r.Era || t.Era == r.Era && !t.Led && max(t.Followed, t.Toward) > r.Promoted
	}
	if r.Promoted == 0 || slices.ContainsFunc(all, newer) {
		return nil
	}
	return r.Live
}

// setBack reports whether ZooKeeper's data may be an older copy, of before a loss: then the newest promotion that it names is not the
// newest of all. As soon as a copy has followed that one, or is about to, it counts.
func (r Rules) setBack(all []Told) bool {
	return !slices.ContainsFunc(all, func(t Told) bool { return t.Era == r.Era && max(t.Followed, t.Toward) >= r.Promoted })
}

// eras is how many eras there are after the present one. Nothing orders them but the clocks of ZooKeeper's servers.
func (r Rules) eras(all []Told) int {
	later := map[int64]bool{}
	for _, t := range all {
		if t.Era > r.Era {
			later[t.Era] = true
		}
	}
	return len(later)
}

// newer orders copies by their data, and equal ones by name.
func (r Rules) newer(a, b Told) int {
	return cmp.Or(cmp.Compare(a.Era, b.Era), cmp.Compare(a.Followed, b.Followed), one(a.Led && a.Same)-one(b.Led && b.Same),
		cmp.Compare(*a.Position, *b.Position),
		one(a.Led)-one(b.Led), cmp.Compare(r.mayHave(a), r.mayHave(b)), strings.Compare(b.Node, a.Node))
}

// Judge compares what was told. The order of the copies does not matter.
func (r Rules) Judge(all []Told) Verdict {
	if i := slices.IndexFunc(all, func(t Told) bool { return t.Forced && t.Stands }); i >= 0 {
		return Verdict{Node: all[i].Node, Forced: true}
	}
	if len(all) > 0 && !slices.ContainsFunc(all, func(t Told) bool { return !t.Empty }) { // there is nothing to lose
		r.Promoted, all = 0, slices.Clone(all)
		for i := range all {
			all[i].Era, all[i].Followed, all[i].Position = 0, 0, new(uint64)
		}
	}
	var known []Told
	var unknown []string
	setBack, live := r.setBack(all), r.live(all)
	for _, t := range all {
		if live != nil && !slices.Contains(live, t.Node) {
			continue
		}
		if why := lost(t, all); why != "" {
			t.Position, t.Same, t.Why = nil, false, why
		}
		if r.Promoted != 0 && t.Era != r.Era && !(setBack && t.Era > r.Era) { // what was promoted since has other data
			t.Era, t.Followed, t.Toward = 0, 0, 0
		}
		if r.counts(t) {
			known = append(known, t)
		} else {
			unknown = append(unknown, t.Node+": "+r.unknown(t))
		}
	}
	slices.Sort(unknown)
	need := max(r.From, 1)
	if live != nil {
		need = max(len(live)-1, 1)
	}
	because := ""
	if r.Promoted == 0 { // any of them may be the one with the data, and nothing else says which
		need, because = max(need, len(all)), "no copy was promoted before, and the first promotion needs every node's report: "
	}
	if len(known) < need {
		why := fmt.Sprintf("%s%d of %d copies have reported their position", because, len(known), need)
		if len(unknown) > 0 {
			why += " (" + strings.Join(unknown, "; ") + ")"
		}
		return Verdict{Why: why}
	}
	if r.Promoted != 0 && r.eras(known) > 1 {
		return Verdict{Why: "an older copy of ZooKeeper's data is back, and the copies have followed promotions of different times since"}
	}
	sure := slices.DeleteFunc(slices.Clone(known), func(t Told) bool { return !r.fit(t) })
	if len(sure) == 0 {
		return Verdict{Why: "no copy is known to have the data of a primary"}
	}
	best := slices.MaxFunc(sure, r.newer)
	restarted := func(t, best Told) bool { return r.mayBeNewer(t, best) && t.Same || mayHaveMore(t, best) && r.fit(t) }
	followed := func(t, best Told) bool {
		t.Same = false // what it has said when it was told last
		return r.mayBeNewer(t, best)
	}
	if why := open(known, best, followed, "it may have followed the lost primary"); why != "" {
		return Verdict{Why: why}
	}
	if why := open(known, best, restarted, "it has been restarted, and cannot tell how far its data goes"); why != "" {
		return Verdict{Why: why}
	}
	var fit []Told
	for _, t := range sure {
		if t.Stands && t.Era == best.Era && t.Followed == best.Followed && r.mayHave(t) == r.mayHave(best) &&
			(t.Node == best.Node || !best.Same && *best.Position-*t.Position <= r.MaxLag) {
			fit = append(fit, t)
		}
	}
	if len(fit) == 0 {
		return Verdict{
			Best: best.Node, Why: fmt.Sprintf("the copy on %s has the newest data, but its node cannot take the service", best.Node),
		}
	}
	first := slices.MaxFunc(fit, r.preferred)
	if first.Gives {
		others := slices.DeleteFunc(fit, func(t Told) bool { return t.Gives || *t.Position < *first.Position })
		if len(others) > 0 {
			first = slices.MaxFunc(others, r.preferred)
		}
	}
	return Verdict{Node: first.Node}
}

// open says which copies may have data that the best one lacks, and why; "": none.
func open(all []Told, best Told, may func(t, best Told) bool, why string) string {
	var nodes []string
	for _, t := range all {
		if may(t, best) {
			nodes = append(nodes, t.Node)
		}
	}
	if len(nodes) == 0 {
		return ""
	}
	slices.Sort(nodes)
	return fmt.Sprintf("the copy on %s may have newer data than that on %s: %s", strings.Join(nodes, ", "), best.Node, why)
}

// preferred orders copies that may be promoted.
func (r Rules) preferred(a, b Told) int {
	return cmp.Or(one(a.Chosen)-one(b.Chosen), cmp.Compare(a.Priority, b.Priority), r.newer(a, b))
}

// unknown is why a copy does not count.
func (r Rules) unknown(t Told) string {
	switch {
	case t.Why != "":
		return t.Why
	case t.Position == nil:
		return "it has no position"
	}
	return "it has not followed any promoted copy yet"
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
