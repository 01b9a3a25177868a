package copies

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func at(n uint64) *uint64 { return &n }

// copyOf is a copy whose node stands for the lock.
func copyOf(node string, followed int64, position *uint64) Told {
	return Told{Node: node, Followed: followed, Position: position, Stands: true}
}

func TestTheNewestDataWins(t *testing.T) {
	preferred := func(c Told) Told { c.Priority = 10; return c }
	chosen := func(c Told) Told { c.Chosen = true; return c }
	forced := func(c Told) Told { c.Forced = true; return c }
	toward := func(token int64, c Told) Told { c.Toward = token; return c }
	tied := func(c Told) Told { c.Tied = true; return c }
	gives := func(c Told) Told { c.Gives = true; return c }
	leaves := func(c Told) Told { c.Stands = false; return c }
	same := func(c Told) Told { c.Same = true; return c }
	empty := func(c Told) Told { c.Empty = true; return c }
	led := func(c Told) Told { c.Led = true; return c }
	saw := func(position uint64, c Told) Told { c.Saw = Lead{"a", 0, 5, position}; return c }
	for name, c := range map[string]struct {
		rules Rules
		all   []Told
		want  string
		why   string
	}{
		"the greater position":                      {Rules{Promoted: 5}, []Told{copyOf("a", 5, at(10)), copyOf("b", 5, at(11))}, "b", ""},
		"a newer promotion beats any position":      {Rules{Promoted: 5, MaxLag: math.MaxUint64}, []Told{copyOf("a", 4, at(1000)), copyOf("b", 5, at(1))}, "b", ""},
		"an empty position is not 0":                {Rules{Promoted: 5, From: 2}, []Told{copyOf("a", 5, at(0)), copyOf("b", 5, nil)}, "", "1 of 2 copies have reported their position (b: it has no position)"},
		"0 is a position":                           {Rules{Promoted: 5, From: 2}, []Told{copyOf("a", 5, at(0)), copyOf("b", 5, at(0))}, "a", ""},
		"an emptied copy does not win":              {Rules{Promoted: 5}, []Told{preferred(copyOf("a", 5, at(0))), copyOf("b", 5, at(7))}, "b", ""},
		"a new copy has no place among the others":  {Rules{Promoted: 5, From: 1}, []Told{copyOf("a", 0, at(1000))}, "", "0 of 1 copies have reported their position (a: it has not followed any promoted copy yet)"},
		"unless nobody ever was promoted":           {Rules{From: 2}, []Told{copyOf("a", 0, at(0)), copyOf("b", 0, at(1))}, "b", ""},
		"the first promotion waits for every node":  {Rules{From: 2}, []Told{copyOf("a", 0, at(0)), copyOf("b", 0, at(1)), {Node: "c", Why: "it has reported nothing"}}, "", "no copy was promoted before, and the first promotion needs every node's report: 2 of 3 copies have reported their position (c: it has reported nothing)"},
		"and for as many as the config gives":       {Rules{From: 2}, []Told{copyOf("a", 0, at(1))}, "", "no copy was promoted before, and the first promotion needs every node's report: 1 of 2 copies have reported their position"},
		"or for an operator's word":                 {Rules{From: 2}, []Told{forced(copyOf("a", 0, at(1))), {Node: "c"}}, "a", ""},
		"an empty copy does not win that either":    {Rules{}, []Told{preferred(copyOf("a", 0, at(0))), same(copyOf("b", 0, at(1))), copyOf("c", 0, at(0))}, "b", ""},
		"and of two with data nobody knows":         {Rules{}, []Told{same(copyOf("a", 0, at(1))), same(copyOf("b", 0, at(1)))}, "", "the copy on b may have newer data than that on a: it has been restarted, and cannot tell how far its data goes"},
		"all restarted, and one led":                {Rules{Promoted: 5, From: 2}, []Told{same(led(copyOf("a", 5, at(10)))), same(preferred(copyOf("b", 5, at(12)))), same(copyOf("c", 5, at(11)))}, "a", ""},
		"and all others are within max_lag":         {Rules{Promoted: 5, From: 2, MaxLag: 100}, []Told{same(led(copyOf("a", 5, at(10)))), preferred(copyOf("b", 5, at(12)))}, "a", ""},
		"the one that led has lost nothing":         {Rules{Promoted: 5, From: 2}, []Told{led(copyOf("a", 5, at(12))), same(copyOf("b", 5, at(11)))}, "a", ""},
		"and cannot take the service":               {Rules{Promoted: 5, From: 2}, []Told{leaves(same(led(copyOf("a", 5, at(12))))), copyOf("b", 5, at(12))}, "", "the copy on a has the newest data, but its node cannot take the service"},
		"it led an earlier promotion":               {Rules{Promoted: 5, From: 2}, []Told{same(led(copyOf("a", 4, at(99)))), copyOf("b", 5, at(1))}, "b", ""},
		"one restarted, and nobody led":             {Rules{Promoted: 5, From: 2}, []Told{same(copyOf("a", 5, at(10))), copyOf("b", 5, at(12))}, "", "the copy on a may have newer data than that on b: it has been restarted, and cannot tell how far its data goes"},
		"or had as much already":                    {Rules{Promoted: 5, From: 2}, []Told{same(copyOf("a", 5, at(12))), preferred(copyOf("b", 5, at(12)))}, "a", ""},
		"or had followed an earlier promotion":      {Rules{Promoted: 5, From: 2}, []Told{same(copyOf("a", 4, at(99))), copyOf("b", 5, at(1))}, "b", ""},
		"or was on its way, and the leader is here": {Rules{Promoted: 5, From: 2}, []Told{same(toward(5, copyOf("a", 4, at(1)))), led(same(copyOf("b", 5, at(9))))}, "b", ""},
		"or was on its way, and it is not":          {Rules{Promoted: 5, From: 2}, []Told{same(toward(5, copyOf("a", 4, at(1)))), copyOf("b", 5, at(9))}, "", "the copy on a may have newer data than that on b: it has been restarted, and cannot tell how far its data goes"},
		"all have lost their data, or had none":     {Rules{Promoted: 5, From: 2}, []Told{empty(copyOf("a", 5, nil)), preferred(empty(copyOf("b", 4, nil))), empty(copyOf("c", 5, at(0)))}, "b", ""},
		"all but one":                               {Rules{Promoted: 5, From: 2}, []Told{empty(copyOf("a", 5, nil)), empty(copyOf("b", 5, nil)), {Node: "c"}}, "", "0 of 2 copies have reported their position (a: it has no position; b: it has no position; c: it has no position)"},
		"one of two that acknowledge":               {Rules{Promoted: 5, From: 2, Live: []string{"a", "z"}}, []Told{copyOf("a", 5, at(10)), preferred(copyOf("b", 5, at(11)))}, "a", ""},
		"one of three that do":                      {Rules{Promoted: 5, From: 1, Live: []string{"a", "y", "z"}}, []Told{copyOf("a", 5, at(10)), copyOf("b", 5, at(11))}, "", "1 of 2 copies have reported their position"},
		"what an outsider saw counts":               {Rules{Promoted: 5, Live: []string{"a", "z"}}, []Told{copyOf("a", 5, at(10)), saw(12, copyOf("b", 5, at(11)))}, "", "0 of 1 copies have reported their position (a: it has lost data: its position is 10, and was 12 while it was the primary)"},
		"the record is older than a copy's data":    {Rules{Promoted: 5, From: 2, Live: []string{"a", "z"}}, []Told{copyOf("a", 5, at(10)), copyOf("b", 6, at(11))}, "b", ""},
		"or of before a promotion that failed":      {Rules{Promoted: 5, From: 3, Live: []string{"a", "z"}}, []Told{led(copyOf("a", 6, at(10)))}, "a", ""},
		"all of it have lost their data":            {Rules{Promoted: 5, From: 2, Live: []string{"a", "z"}}, []Told{empty(copyOf("a", 5, nil)), preferred(empty(copyOf("b", 5, nil)))}, "b", ""},
		"data of an earlier life of the cluster":    {Rules{}, []Told{copyOf("a", 0, at(1000)), copyOf("b", 3, at(1))}, "b", ""},
		"too few have told":                         {Rules{Promoted: 5, From: 3}, []Told{copyOf("a", 5, at(1)), copyOf("b", 5, at(1))}, "", "2 of 3 copies have reported their position"},
		"nobody has told":                           {Rules{Promoted: 5}, nil, "", "0 of 1 copies have reported their position"},
		"the preferred one within max_lag":          {Rules{Promoted: 5, MaxLag: 10}, []Told{preferred(copyOf("a", 5, at(90))), copyOf("b", 5, at(100))}, "a", ""},
		"and not beyond it":                         {Rules{Promoted: 5, MaxLag: 10}, []Told{preferred(copyOf("a", 5, at(89))), copyOf("b", 5, at(100))}, "b", ""},
		"an operator's choice, if it has the data":  {Rules{Promoted: 5}, []Told{preferred(copyOf("a", 5, at(100))), chosen(copyOf("b", 5, at(100)))}, "b", ""},
		"and not if it has not":                     {Rules{Promoted: 5}, []Told{copyOf("a", 5, at(100)), chosen(copyOf("b", 5, at(99)))}, "a", ""},
		"unless the choice is forced":               {Rules{Promoted: 5, From: 3}, []Told{copyOf("a", 5, at(100)), forced(copyOf("b", 0, nil))}, "b", ""},
		"and its node can":                          {Rules{Promoted: 5}, []Told{copyOf("a", 5, at(100)), leaves(forced(copyOf("b", 5, at(99))))}, "a", ""},
		"one that only holds data counts":           {Rules{Promoted: 5, From: 2}, []Told{leaves(copyOf("a", 5, at(1))), copyOf("b", 5, at(1))}, "b", ""},
		"and keeps older data from being promoted":  {Rules{Promoted: 5, From: 2}, []Told{leaves(copyOf("a", 5, at(2))), copyOf("b", 5, at(1))}, "", "the copy on a has the newest data, but its node cannot take the service"},
		"of equal ones the first by name":           {Rules{Promoted: 5}, []Told{copyOf("b", 5, at(1)), copyOf("a", 5, at(1))}, "a", ""},
		"one that does not give it away":            {Rules{Promoted: 5}, []Told{gives(copyOf("a", 5, at(1))), copyOf("b", 5, at(1))}, "b", ""},
		"though that one is preferred":              {Rules{Promoted: 5}, []Told{gives(preferred(copyOf("a", 5, at(1)))), copyOf("b", 5, at(1)), copyOf("c", 5, at(1))}, "b", ""},
		"or lacks what it has":                      {Rules{Promoted: 5, MaxLag: 10}, []Told{gives(preferred(copyOf("a", 5, at(1)))), copyOf("b", 5, at(2))}, "b", ""},
		"and not if only it has the newest data":    {Rules{Promoted: 5}, []Told{gives(copyOf("a", 5, at(2))), copyOf("b", 5, at(1))}, "a", ""},
		"within max_lag either":                     {Rules{Promoted: 5, MaxLag: 10}, []Told{gives(copyOf("a", 5, at(2))), copyOf("b", 5, at(1))}, "a", ""},
		"and not if the others cannot":              {Rules{Promoted: 5}, []Told{gives(copyOf("a", 5, at(1))), leaves(copyOf("b", 5, at(1)))}, "a", ""},
		"nor where they have other data":            {Rules{Promoted: 5, MaxLag: 10}, []Told{gives(copyOf("a", 5, at(1))), copyOf("b", 4, at(1))}, "a", ""},
		"one on its way has nothing newer":          {Rules{Promoted: 5, From: 2}, []Told{copyOf("a", 5, at(10)), toward(5, copyOf("b", 4, at(10)))}, "a", ""},
		"or may have":                               {Rules{Promoted: 5, From: 2}, []Told{copyOf("a", 5, at(10)), toward(5, copyOf("b", 4, at(11)))}, "", "the copy on b may have newer data than that on a: it may have followed the lost primary"},
		"or of a newer promotion":                   {Rules{Promoted: 5, From: 2}, []Told{copyOf("a", 4, at(10)), toward(5, copyOf("b", 4, at(9)))}, "", "the copy on b may have newer data than that on a: it may have followed the lost primary"},
		"one followed while its node slept":         {Rules{Promoted: 5, From: 2}, []Told{copyOf("a", 5, at(10)), tied(copyOf("b", 4, at(11)))}, "", "the copy on b may have newer data than that on a: it may have followed the lost primary"},
		"or it has nothing newer":                   {Rules{Promoted: 5, From: 2}, []Told{copyOf("a", 5, at(10)), tied(copyOf("b", 4, at(10)))}, "a", ""},
		"or all did":                                {Rules{Promoted: 5, From: 2}, []Told{tied(copyOf("a", 4, at(10))), tied(copyOf("b", 4, at(11)))}, "b", ""},
		"or it has what the newest one wrote":       {Rules{Promoted: 5, From: 2}, []Told{tied(copyOf("a", 5, at(10))), tied(copyOf("b", 5, at(11)))}, "b", ""},
		"and the other one may not have done so":    {Rules{Promoted: 5, From: 2}, []Told{copyOf("a", 4, at(10)), tied(copyOf("b", 3, at(9)))}, "", "the copy on b may have newer data than that on a: it may have followed the lost primary"},
		"or has less, though it was told of more":   {Rules{Promoted: 5, From: 2}, []Told{tied(copyOf("a", 4, at(10))), tied(copyOf("b", 3, at(11)))}, "", "the copy on b may have newer data than that on a: it may have followed the lost primary"},
		"or not less":                               {Rules{Promoted: 5, From: 2}, []Told{tied(copyOf("a", 4, at(10))), tied(copyOf("b", 3, at(10)))}, "a", ""},
		"of equal ones the one that may have":       {Rules{Promoted: 5, From: 2}, []Told{tied(copyOf("b", 4, at(10))), preferred(copyOf("a", 4, at(10)))}, "b", ""},
		"which max_lag does not make up for":        {Rules{Promoted: 5, From: 2, MaxLag: 10}, []Told{tied(copyOf("b", 4, at(11))), preferred(copyOf("a", 4, at(10)))}, "b", ""},
		"both restarted, and followed unseen":       {Rules{Promoted: 5, From: 2}, []Told{same(tied(copyOf("a", 5, at(20)))), same(tied(copyOf("b", 5, at(10))))}, "", "the copy on b may have newer data than that on a: it has been restarted, and cannot tell how far its data goes"},
		"or was on its way to a newer promotion":    {Rules{Promoted: 5, From: 2}, []Told{copyOf("a", 5, at(10)), tied(toward(6, copyOf("b", 4, at(9))))}, "", "the copy on b may have newer data than that on a: it may have followed the lost primary"},
		"or its promotions are of another era":      {Rules{Era: 2, Promoted: 5}, []Told{{Node: "a", Stands: true, Era: 2, Followed: 5, Position: at(1)}, {Node: "b", Era: 1, Tied: true, Followed: 4, Position: at(9)}}, "a", ""},
		"all are on their way":                      {Rules{Promoted: 5}, []Told{toward(5, copyOf("b", 4, at(9)))}, "", "no copy is known to have the data of a primary"},
		"nobody ever was promoted here":             {Rules{From: 2}, []Told{toward(5, copyOf("a", 4, at(9))), copyOf("b", 0, at(1))}, "a", ""},
		"data of before a loss of ZooKeeper's":      {Rules{Era: 2, Promoted: 5, From: 2}, []Told{{Node: "a", Stands: true, Era: 1, Followed: 900, Position: at(9)}, {Node: "b", Stands: true, Era: 2, Followed: 5, Position: at(1)}}, "", "1 of 2 copies have reported their position (a: it has not followed any promoted copy yet)"},
		"an older copy of ZooKeeper's data is back": {Rules{Era: 1, Promoted: 342, From: 2}, []Told{{Node: "a", Stands: true, Era: 2, Followed: 47, Position: at(9)}, {Node: "b", Stands: true, Era: 2, Followed: 47, Position: at(8)}, {Node: "c", Stands: true, Era: 1, Followed: 300, Position: at(99)}}, "a", ""},
		"and a copy was on its way before that":     {Rules{Era: 1, Promoted: 342, From: 2}, []Told{{Node: "a", Stands: true, Era: 2, Followed: 47, Position: at(9)}, {Node: "c", Stands: true, Era: 1, Toward: 300, Position: at(99)}}, "a", ""},
		"and a tie is to a promotion before that":   {Rules{Era: 1, Promoted: 342}, []Told{{Node: "a", Stands: true, Era: 2, Followed: 47, Position: at(9)}, {Node: "b", Era: 2, Tied: true, Followed: 47, Position: at(8)}}, "a", ""},
		"and there were two times since":            {Rules{Era: 1, Promoted: 342}, []Told{{Node: "a", Stands: true, Era: 3, Followed: 47, Position: at(9)}, {Node: "b", Stands: true, Era: 2, Followed: 47, Position: at(8)}}, "", "an older copy of ZooKeeper's data is back, and the copies have followed promotions of different times since"},
		"one that was chosen, and lost its data":    {Rules{Promoted: 6, From: 2}, []Told{led(copyOf("a", 6, nil)), led(copyOf("b", 5, at(12))), copyOf("c", 5, at(12))}, "b", ""},
		"and only one of the others is there":       {Rules{Promoted: 6, From: 2}, []Told{{Node: "a", Followed: 6, Why: "it has lost data"}, copyOf("c", 5, at(12))}, "", "1 of 2 copies have reported their position (a: it has lost data)"},
		"and a copy has followed what that names":   {Rules{Era: 1, Promoted: 342, From: 2}, []Told{{Node: "a", Stands: true, Era: 2, Followed: 47, Position: at(9)}, {Node: "b", Stands: true, Era: 2, Followed: 47, Position: at(8)}, {Node: "c", Stands: true, Era: 1, Followed: 342, Position: at(99)}}, "", "1 of 2 copies have reported their position (a: it has not followed any promoted copy yet; b: it has not followed any promoted copy yet)"},
		"or is about to":                            {Rules{Era: 1, Promoted: 342}, []Told{{Node: "a", Stands: true, Era: 2, Followed: 47, Position: at(9)}, {Node: "c", Stands: true, Era: 1, Toward: 342}}, "", "0 of 1 copies have reported their position (a: it has not followed any promoted copy yet; c: it has no position)"},
		"which counts until another is promoted":    {Rules{Era: 3, From: 2}, []Told{{Node: "a", Stands: true, Era: 1, Followed: 900, Position: at(9)}, {Node: "b", Stands: true, Era: 2, Followed: 5, Position: at(1)}}, "b", ""},
		"a primary that has less than it had":       {Rules{Promoted: 5, From: 2}, []Told{led(copyOf("a", 5, at(10))), saw(12, copyOf("b", 5, at(8)))}, "", "1 of 2 copies have reported their position (a: it has lost data: its position is 10, and was 12 while it was the primary)"},
		"or whose node's disk is an older one":      {Rules{Promoted: 5, From: 2}, []Told{same(led(copyOf("a", 4, at(99)))), saw(12, copyOf("b", 5, at(8)))}, "", "1 of 2 copies have reported their position (a: it has lost data: it was the primary as of promotion 5, and has nothing of that)"},
		"or that has none left":                     {Rules{Era: 1, Promoted: 5, From: 2}, []Told{copyOf("a", 0, at(99)), {Node: "b", Era: 1, Followed: 5, Position: at(8), Saw: Lead{"a", 1, 5, 12}}}, "", "1 of 2 copies have reported their position (a: it has not followed any promoted copy yet)"},
		"it has no less":                            {Rules{Promoted: 5, From: 2}, []Told{led(copyOf("a", 5, at(12))), saw(12, copyOf("b", 5, at(8)))}, "a", ""},
		"it has lost nothing":                       {Rules{Promoted: 5, From: 2}, []Told{same(led(copyOf("a", 5, at(10)))), saw(12, copyOf("b", 5, at(8)))}, "a", ""},
		"what it has is not known":                  {Rules{Promoted: 5, From: 2}, []Told{led(copyOf("a", 5, nil)), saw(12, copyOf("b", 5, at(8)))}, "", "1 of 2 copies have reported their position (a: it has no position)"},
		"it has followed another one since":         {Rules{Promoted: 6, From: 2}, []Told{copyOf("a", 6, at(10)), saw(12, copyOf("b", 5, at(8)))}, "a", ""},
		"or is about to follow one":                 {Rules{Promoted: 5, From: 2}, []Told{toward(6, copyOf("a", 5, at(10))), saw(12, copyOf("b", 5, at(8)))}, "", "the copy on a may have newer data than that on b: it may have followed the lost primary"},
		"it was the primary in another era":         {Rules{Era: 1, Promoted: 5, From: 2}, []Told{{Node: "a", Stands: true, Era: 1, Followed: 5, Position: at(10)}, {Node: "b", Era: 1, Followed: 5, Position: at(8), Saw: Lead{"a", 2, 5, 12}}}, "a", ""},
		"what a node says of its copy is passed on": {Rules{Promoted: 5}, []Told{{Node: "a", Followed: 5, Why: "it has lost data"}}, "", "0 of 1 copies have reported their position (a: it has lost data)"},
	} {
		v := c.rules.Judge(c.all)
		if best, _, waits := strings.Cut(v.Why, " has the newest data, but"); waits != (v.Best != "") || waits && best != "the copy on "+v.Best {
			t.Errorf("%s: %+v", name, v)
		}
		if v.Node != c.want || v.Why != c.why {
			t.Errorf("%s: %+v, want %q, %q", name, v, c.want, c.why)
		}
	}
}

// FuzzJudge: whoever is promoted stands, has told, and has the newest data but for max_lag; and all nodes that know the same say the same.
func FuzzJudge(f *testing.F) {
	f.Add([]byte{1, 5, 10, 3, 2, 5, 11, 3}, int64(5), 2, uint64(0))
	f.Add([]byte{1, 0, 0, 3, 2, 0, 0, 1}, int64(0), 1, uint64(3))
	f.Add([]byte{1, 5, 10, 3, 25, 5, 11, 1, 25, 5, 12, 3}, int64(5), 2, uint64(0))
	f.Fuzz(func(t *testing.T, raw []byte, promoted int64, from int, lag uint64) {
		r := Rules{Promoted: promoted, From: from % 8, MaxLag: lag}
		var all []Told
		for ; len(raw) >= 4 && len(all) < 20; raw = raw[4:] {
			c := Told{
				Node: strings.Repeat("n", len(all)+1), Priority: int(raw[0] % 4), Followed: int64(raw[1] % 8), Toward: int64(raw[1] >> 3 % 8), Stands: raw[3]&1 > 0, Chosen: raw[3]&4 > 0, Tied: raw[3]&8 > 0, Gives: raw[3]&16 > 0,
				Same: raw[3]&32 > 0, Led: raw[3]&64 > 0,
			}
			if raw[0]&8 > 0 {
				c.Saw = Lead{strings.Repeat("n", int(raw[0]>>4)), 0, int64(raw[1] % 8), uint64(raw[2])}
			}
			if raw[3]&2 > 0 {
				c.Position = at(uint64(raw[2]))
			}
			all = append(all, c)
		}
		v := r.Judge(all)
		shuffled := slices.Clone(all)
		rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if again := r.Judge(shuffled); again != v {
			t.Fatalf("%+v, and in another order %+v", v, again)
		}
		if (v.Node == "") != (v.Why != "") {
			t.Fatalf("%+v", v)
		}
		if v.Node == "" {
			return
		}
		i, told := slices.IndexFunc(all, func(c Told) bool { return c.Node == v.Node }), 0
		if c := all[i]; !c.Stands || c.Position == nil || (c.Followed == 0 || c.Toward > 0) && promoted != 0 {
			t.Fatalf("%+v is promoted", c)
		}
		led := func(than Told) bool { // all that there is of this promotion
			return slices.ContainsFunc(all, func(c Told) bool { return c.Led && c.Position != nil && c.Followed == than.Followed })
		}
		if all[i].Led && all[i].Same {
			all[i].Position = at(math.MaxUint64)
		}
		for j, c := range all {
			if mine := all[i]; c.Same && j != i && c.Position != nil && c.Followed == mine.Followed && (c.Toward == 0 || promoted == 0) && (c.Followed > 0 || promoted == 0) && !led(c) {
				t.Fatalf("%+v is promoted, and %+v may have more", mine, c)
			}
			if mine := all[i]; mine.Gives && !mine.Same && !c.Gives && c.Stands && c.Followed == mine.Followed && c.Position != nil && *c.Position >= *mine.Position && (c.Toward == 0 || promoted == 0) && (c.Tied || !mine.Tied || mine.Followed >= promoted) {
				t.Fatalf("%+v is promoted again, and not %+v", mine, c)
			}
			if mine := all[i]; c.Tied && c.Position != nil && c.Followed+c.Toward > 0 && promoted != 0 && mine.Followed <= promoted && c.Followed <= promoted {
				if mine.Followed < promoted && !mine.Tied || *c.Position > *mine.Position && *c.Position-*mine.Position > lag {
					t.Fatalf("%+v is promoted beside %+v", mine, c)
				}
			}
			if c.Position == nil || c.Followed == 0 && c.Toward == 0 && promoted != 0 {
				continue
			}
			told++
			if mine := all[i]; c.Toward > 0 && promoted != 0 {
				if c.Toward > mine.Followed || c.Toward == mine.Followed && *c.Position > *mine.Position && *c.Position-*mine.Position > lag {
					t.Fatalf("%+v is promoted beside %+v", mine, c)
				}
				continue
			}
			if mine := all[i]; c.Followed > mine.Followed || c.Followed == mine.Followed && *c.Position > *mine.Position && *c.Position-*mine.Position > lag {
				t.Fatalf("%+v is promoted beside %+v", mine, c)
			}
		}
		if told < r.From {
			t.Fatalf("%d have told", told)
		}
	})
}
