package web

import (
	"cmp"
	"context"
	"slices"
	"time"

	"understudy/election"
	"understudy/supervisor/control"
	"understudy/supervisor/wait"
)

const (
	// recorded is when the history has an activation, and with it how the previous one ended.
	recorded = time.Second
	// tries is how often the history is asked for what it does not have yet.
	tries = 5
	// mostTerms is how many activations may wait to be counted.
	mostTerms = 1000
)

// term is an activation on this node that is not counted yet: whether it was a failover, and what gap it ended.
type term struct {
	service string
	token   int64
	by      election.Proof // how the previous active was known to be dead
	claimed time.Time      // when the lock was found free
	began   time.Time
	ready   time.Time // when its programs were, for the first time
	over    bool
	asked   int // how often the history was
}

// take notes a change of a service's state for its activations. The caller holds mu.
func (b *Board) take(was, now control.LocalStatus) {
	if now.Role == election.RoleClaiming && was.Role != now.Role {
		b.claimed[now.Service] = time.Now()
	}
	if now.Role == election.RoleActive && was.Role != now.Role {
		b.terms = append(b.terms, &term{service: now.Service, token: now.Token, by: now.By, claimed: b.claimed[now.Service],
			began: time.Now()})
		if over := len(b.terms) - mostTerms; over > 0 {
			b.terms = b.terms[over:]
		}
	}
	for _, t := range b.terms {
		if t.service != now.Service {
			continue
		}
		if t.over = t.over || now.Role != election.RoleActive || now.Token != t.token; !t.over && now.Ready && t.ready.IsZero() {
			t.ready = time.Now()
		}
	}
}

// due takes the activations that are ready, or over, and that the history has by now.
func (b *Board) due() (list []*term) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.terms = slices.DeleteFunc(b.terms, func(t *term) bool {
		if time.Since(t.began) < recorded || t.ready.IsZero() && !t.over {
			return false
		}
		list = append(list, t)
		return true
	})
	return list
}

// failovers tells failovers from hand-overs, by the history.
type failovers struct {
	board   *Board
	history *reader[[]control.HistoryEntry]
}

// run counts this node's activations.
func (j failovers) run(ctx context.Context) {
	for wait.For(ctx, recorded) {
		for _, t := range j.board.due() {
			if !j.count(ctx, t) {
				j.board.mu.Lock()
				j.board.terms = append(j.board.terms, t)
				j.board.mu.Unlock()
			}
		}
	}
}

// count counts one, unless what the history says is not known yet.
func (j failovers) count(ctx context.Context, t *term) (done bool) {
	m := j.board.metrics
	list, err := j.history.since(ctx, t.service, time.Now())
	t.asked++
	own, previous, known := find(list, t.token)
	first := known && previous == nil && !t.by.Fenced()
	reason := why(t, previous)
	unready := known && own.Started != nil && own.Ready == nil && !t.ready.IsZero() // it does not say yet
	switch {
	case t.asked < tries && (err != nil || !known || unready || !first && reason == ""):
		return false
	case first:
		return true
	}
	reason = cmp.Or(reason, election.ReasonUnknown)
	m.moves(reason).WithLabelValues(t.service, string(reason)).Inc()
	if !t.ready.IsZero() {
		m.gap.WithLabelValues(t.service).Observe(max(t.gap(own), 0).Seconds())
	}
	return true
}

// gap is how long the service was down before it was ready here, by the rule of the history. Where that only has bounds, the longest
// counts, and if there is none, the shortest.
func (t *term) gap(own *control.HistoryEntry) time.Duration {
	if own != nil {
		if ms := cmp.Or(own.GapMs, own.GapMaxMs, own.GapMinMs); ms != nil {
			return time.Duration(*ms) * time.Millisecond
		}
	}
	return t.ready.Sub(t.claimed)
}

// find looks an activation up, and the one before it.
func find(list []control.HistoryEntry, token int64) (own, previous *control.HistoryEntry, known bool) {
	for i := range list {
		if list[i].Token != token {
			continue
		}
		if i+1 < len(list) {
			previous = &list[i+1]
		}
		return &list[i], previous, true
	}
	return nil, nil, false
}

// why says in a word how the previous activation ended; empty: that is not known yet.
func why(t *term, previous *control.HistoryEntry) election.Reason {
	switch {
	case t.by.Fenced():
		return fencedBy(t.by)
	case previous == nil:
		return ""
	}
	return previous.Reason.Word()
}

// fencedBy is in the metrics what the history has in two entries: that one ended as nobody planned, and by which method that was known.
// There are few methods, and any number of operators who confirm.
func fencedBy(p election.Proof) election.Reason {
	method := p.Method()
	switch {
	case p.Confirmed():
		method = "confirmed"
	case !slices.Contains(methods, method):
		method = ownHost
	}
	return election.Reason("fenced: " + method)
}

// ownHost is any proof by what this machine knows itself.
const ownHost = "own host"

var methods = append(slices.Clone(election.ProofMethods), ownHost)

// fencedEnds are all that fencedBy may be.
func fencedEnds() (all []election.Reason) {
	for _, method := range methods {
		all = append(all, fencedBy(election.Proof(method)))
	}
	return all
}
