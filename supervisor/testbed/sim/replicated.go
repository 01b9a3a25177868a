package sim

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"understudy/election"
	"understudy/election/jute"
	"understudy/supervisor/child"
	"understudy/supervisor/config"
	"understudy/supervisor/replica"
)

// Replicated services: in one of so many seeds each service runs on every node, and one copy is promoted. To the checker a promotion is what
// a start is elsewhere. The copies keep data: a write is acknowledged once a follower has it, too, and whoever is promoted has to have it.
const (
	replicatedIn   = 7
	replicatedFrom = 4

	lagging = 3 // one in so many writes does not reach a copy before the next one does

	roleCommand     = "role"
	positionCommand = "position"
	promoteCommand  = "promote"
	followCommand   = "follow"
)

// replicate makes the services of a plan replicated, and takes out what does not go with that.
func (p *Plan) replicate() {
	if p.Seed%replicatedIn != replicatedFrom {
		return
	}
	p.Replicated, p.Order, p.Failback, p.Drills = true, election.Race, false, false
	for i := range p.Episodes {
		e := &p.Episodes[i]
		e.Faults = slices.DeleteFunc(e.Faults, func(f Fault) bool {
			return f.Kind == ChangeConfig && f.Way == editOrder
		})
	}
}

// replicated is the part of a service's config that makes it so.
func (p *Plan) replicated() *config.Replicated {
	if !p.Replicated {
		return nil
	}
	r := &config.Replicated{
		Role: []string{roleCommand}, Position: []string{positionCommand}, Promote: []string{promoteCommand}, Follow: []string{followCommand},
		PositionsFrom: p.positionsFrom(), Interval: 2 * p.Timeout, Timeout: p.Timeout / 4, StateDir: "/state", SeenBy: p.seenBy(),
		Attempts: 2,
	}
	if p.lives() {
		r.Copies, r.PositionsFrom, r.Interval = []string{copiesCommand}, 0, p.Timeout/2
	}
	if p.prepares() {
		r.Prepare, r.Reclone = []string{prepareCommand}, []string{recloneCommand}
	}
	if p.demotes() {
		r.Demote = []string{demoteCommand}
	}
	return r
}

// positionsFrom is the same as the default once a copy was promoted, and left out in every other such seed.
func (p *Plan) positionsFrom() int {
	if p.Seed/replicatedIn/4%2 == 0 {
		return 0
	}
	return max(1, p.Nodes-1)
}

// losesCount: programs lose no data when they are restarted, and cannot tell how far it goes until they have followed a primary. One that
// was the primary then is the only one that is known to have everything, so it comes back also where others do not reach it.
func (p *Plan) losesCount() bool { return p.Seen == "" && p.Seed/replicatedIn/8%2 == 0 }

// revision is a copy's data: each write makes one of the one before.
type revision struct {
	before *revision
	depth  uint64
}

// has reports whether it contains another one.
func (r *revision) has(other *revision) bool {
	for r != nil && other != nil && r.depth > other.depth {
		r = r.before
	}
	return other == nil || r == other
}

// copyOf is what a program of a replicated service is. World.mu guards it.
type copyOf struct {
	primary bool
	led     bool      // it was, with this program
	counted []string  // whose copies it counts, if it is told
	stalls  time.Time // until then it gets nothing new
	asked   bool      // to end
	follows string    // the node whose copy it was told to follow
	from    string    // and the one whose data it has got
	synced  time.Time // when it has that one's data; later: not yet
}

// copiesView is the data of the copies. World.mu guards it.
type copiesView struct {
	*world
	rng    *rand.Rand
	data   map[effectKey]*revision
	acked  map[string]*revision // by service: the newest that was acknowledged
	notes  map[fileKey][]byte
	flaws  map[effectKey]*copyFlaws
	wiped  int             // how often ZooKeeper has lost its data
	given  map[string]int  // by service: how often an operator has given data up
	asks   map[string]bool // by service: nobody is promoted until an operator says which data may be lost
	picks  map[string]bool // and he has to say whose copy it is: one cannot tell how much it has
	odd    map[string]int  // by service: what operators and losses had done when somebody was promoted last
	hiding hiding
}

func newCopiesView(w *world) copiesView {
	return copiesView{
		world: w, rng: w.stream("copies"), data: map[effectKey]*revision{}, acked: map[string]*revision{}, notes: map[fileKey][]byte{}, odd: map[string]int{},
		flaws: map[effectKey]*copyFlaws{}, asks: map[string]bool{}, picks: map[string]bool{}, given: map[string]int{}, hiding: newHiding(),
	}
}

// writes has clients write, all the time. World.mu is held.
func (cv *copiesView) writes() {
	if !cv.plan.Replicated {
		return
	}
	for _, n := range cv.nodes {
		for _, service := range cv.plan.services() {
			if p := cv.on(service, n.name); p != nil && p.copy.primary {
				cv.write(p)
			}
		}
	}
	cv.after(cv.plan.Timeout/8, cv.writes)
}

func (cv *copiesView) write(primary *proc) {
	service, key := primary.tree.service, effectKey{primary.tree.node, primary.tree.service}
	was := cv.data[key]
	now := &revision{before: was, depth: 1}
	if was != nil {
		now.depth += was.depth
	}
	cv.data[key] = now
	for _, n := range cv.nodes {
		if f := cv.on(service, n.name); f != nil && !cv.stalls(f) && !cv.lags() && cv.receives(f, primary) && cv.counts(primary, n.name) {
			cv.acked[service] = now
		}
	}
}

// lags reports whether what was written does not reach a copy before the next write does. While all is well it does.
func (cv *copiesView) lags() bool { return !cv.course.quiet && cv.rng.IntN(lagging) == 0 }

// receives has a copy that follows a primary get all its data, if it can. It reports whether it has.
func (cv *copiesView) receives(f, primary *proc) bool {
	service, active := primary.tree.service, primary.tree.node
	if f.copy.primary || f.copy.follows != active || time.Now().Before(f.copy.synced) || cv.hiding.cut[service] || cv.refuses(f.tree, active) {
		return false
	}
	cv.data[effectKey{f.tree.node, service}], f.copy.from = cv.data[effectKey{active, service}], active
	return true
}

// on is the living program of a copy, or nil. The newest counts: that of a service which was removed may still be ending.
func (cv *copiesView) on(service, node string) (newest *proc) {
	for _, h := range cv.hosts {
		for _, name := range slices.Sorted(maps.Keys(h.trees)) {
			t := h.trees[name]
			if t.service != service || t.node != node {
				continue
			}
			if p := t.copy(); p != nil && (newest == nil || p.since.After(newest.since)) {
				newest = p
			}
		}
	}
	return newest
}

// copy is the program of a copy in this tree, or nil.
func (t *tree) copy() *proc {
	for _, p := range t.all() {
		if p.main && !p.killed && !p.dead {
			return p
		}
	}
	return nil
}

// answer is what a command of a copy says, and its exit code, when it is started. World.mu is held.
func (cv *copiesView) answer(t *tree, spec child.Spec, code int) (string, int) {
	p, active := cv.copyOf(t), variable(spec, "UNDERSTUDY_ACTIVE_NODE")
	switch command := spec.Argv[0]; {
	case command == demoteCommand && p != nil:
		return "", cv.demoteEnds()
	case command == copiesCommand:
		return "", cv.countEnds(p)
	case command == prepareCommand, command == recloneCommand:
		if cv.on(t.service, active) == nil {
			code = 1
		}
		return "", code
	case command == followCommand && p != nil && cv.refuses(t, active):
		return "", 1
	case command == roleCommand && p != nil && p.copy.primary:
		return "", 8
	case (command == roleCommand || command == promoteCommand || command == followCommand) && p != nil:
		return "", 0
	case command == seenCommand && cv.reaches(t.service, t.node, variable(spec, "UNDERSTUDY_ACTIVE_NODE")):
		return "", 0
	case command == positionCommand && p != nil:
		if active != "" && active != t.node {
			if from := cv.on(t.service, active); from != nil && from.copy.primary && (p.copy.from != active || !cv.stalls(p) && !cv.lags()) {
				cv.receives(p, from)
			}
			if p.copy.from != active || cv.hiding.cut[t.service] {
				return "", 0
			}
		}
		depth := uint64(0)
		if r := cv.data[effectKey{t.node, t.service}]; r != nil {
			depth = r.depth
		}
		if active == "" && p.copy.from == "" && !p.copy.primary && depth > 0 && cv.plan.losesCount() {
			return "same", 0
		}
		return fmt.Sprintln(depth), 0
	case command == roleCommand, command == positionCommand, command == promoteCommand, command == followCommand, command == demoteCommand, command == seenCommand:
		return "", 1
	}
	return "", code
}

// does carries out a command of a copy, once it was started. World.mu is held.
func (cv *copiesView) does(t *tree, run *proc, spec child.Spec) {
	p, active := cv.copyOf(t), variable(spec, "UNDERSTUDY_ACTIVE_NODE")
	switch command := spec.Argv[0]; {
	case command == prepareCommand, command == recloneCommand:
		cv.prepares(t, run, active)
	case run.main:
		cv.begins(t)
	case p == nil:
	case command == followCommand:
		cv.turns(t, p, active)
	case command == promoteCommand:
		p.copy.counted = strings.Fields(variable(spec, "UNDERSTUDY_COPIES"))
		if !p.copy.primary { // what an earlier command of the term has left behind may have come first
			cv.promotes(p, tokenOf(spec.Env))
		}
		cv.lingers(t, run)
	case command == copiesCommand:
		run.copy.counted = strings.Fields(variable(spec, "UNDERSTUDY_COPIES"))
	case command == demoteCommand:
		cv.demotes(p, run)
		cv.lingers(t, run)
	}
}

// unpromoted notes why nobody is promoted. For some reasons nodes do not find out by themselves: the primary was gone before the others'
// data was known to be its own.
func (cv *copiesView) unpromoted(service, why string) {
	const untold = "and cannot tell how far its data goes"
	cv.picks[service] = strings.HasSuffix(why, untold)
	known := func(reason string) bool {
		return strings.HasPrefix(reason, "no copy is known to have") || strings.HasSuffix(reason, "it may have followed the lost primary") ||
			strings.HasSuffix(reason, untold) ||
			strings.HasSuffix(reason, ": it has not followed any promoted copy yet") || strings.HasSuffix(reason, " has not succeeded")
	}
	if _, list, told := strings.Cut(strings.TrimSuffix(why, ")"), " copies have reported their position ("); told {
		why = list
	}
	cv.asks[service] = !slices.ContainsFunc(strings.Split(why, "; "), func(reason string) bool { return !known(reason) })
}

// letCount is an operator who does what docs/replicated.md says then: chooses a copy, or lets the nodes choose one.
func (o *operator) letCount(service string) {
	o.mu.Lock()
	asks, chooses := o.copies.asks[service], o.rng.IntN(2) == 0
	whole := slices.DeleteFunc(slices.Clone(o.nodes), func(n *node) bool {
		b := o.copies.flaws[effectKey{n.name, service}]
		return b != nil && b.torn || n.index == o.plan.Ineligible
	})
	chooses = len(whole) > 0 && (chooses || o.copies.picks[service] || len(whole) < len(o.nodes)) // others may be too few to be compared
	to := ""
	if n := o.rng.IntN(len(o.nodes)); len(whole) > 0 {
		to = whole[n%len(whole)].name
	}
	if asks { // from here on data may be lost
		o.copies.asks[service] = false
		o.copies.given[service]++
		o.check.tally.cover.saw("standby", "any copy may be promoted", "standby")
	}
	o.mu.Unlock()
	switch {
	case !asks:
	case chooses:
		o.say("operator: %s is promoted on %s by force", service, to)
		order := election.Order{ID: fmt.Sprint("force", time.Now().UnixNano()), By: "operator"}
		o.amend(service, -1, election.Control{Switchover: &election.Switchover{Order: order, To: to, Force: true, Deadline: time.Now().Add(o.patience())}})
	default:
		o.say("operator: any copy of %s may be promoted", service)
		o.byOperator(jute.OpSetData, jute.SetData{Path: election.Paths{Root: root, Service: service}.Copies(), Data: []byte("{}"), Version: -1})
	}
}

// promoted demands that whoever is promoted has what was acknowledged.
func (cv *copiesView) promoted(t *tree) {
	v := cv.check.services[t.service]
	cv.asks[t.service] = false
	odd := cv.wiped + cv.given[t.service] + v.deleted
	if odd != cv.odd[t.service] { // the record of what was promoted is gone
		cv.odd[t.service] = odd
		delete(cv.acked, t.service)
	}
	if mine := cv.data[effectKey{t.node, t.service}]; !mine.has(cv.acked[t.service]) {
		cv.check.broken("data", "the copy of %s on %s is promoted, and lacks what was acknowledged", t.service, t.node)
	}
}

func variable(spec child.Spec, name string) string {
	for _, entry := range spec.Env {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			return v
		}
	}
	return ""
}

func write(to *os.File, said string) {
	if said != "" && to != nil {
		_, _ = to.WriteString(said)
	}
}

// joins has a tree belong to the session whose lease it ends with now. World.mu is held.
func (t *handle) joins(number uint64) {
	e, err := t.guard.pair.State.Lease(number)
	if err != nil {
		return
	}
	var ticket election.Ticket
	_ = json.Unmarshal(e.Ticket, &ticket)
	t.tree.session = ticket.Session
}

// copies is where a node keeps what its copies have followed: on a disk that outlasts a boot.
func (i *incarnation) copies(service, _ string) replica.Store {
	return copyNotes{i, i.file(service)}
}

type copyNotes struct {
	inc *incarnation
	fileKey
}

// Load implements replica.Store.
func (n copyNotes) Load() ([]byte, error) {
	if !n.inc.pass() {
		return nil, errCrashed
	}
	w := n.inc.node.w
	w.mu.Lock()
	defer w.mu.Unlock()
	data, there := w.copies.notes[n.fileKey]
	if !there {
		return nil, fs.ErrNotExist
	}
	return data, nil
}

// Save implements replica.Store.
func (n copyNotes) Save(data []byte) error {
	if !n.inc.pass() {
		return errCrashed
	}
	w := n.inc.node.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.copies.notes[n.fileKey] = data
	return nil
}
