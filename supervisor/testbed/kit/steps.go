package kit

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit/tick"
	"understudy/supervisor/testbed/must"
	"understudy/supervisor/testbed/steps"
	"understudy/supervisor/testbed/zktest"
)

// endedByStrangers has the sessions that EndSession was to end.
var endedByStrangers sync.Map

// CheckSteps fails the test where what it did is no step of docs/model.
func (p *Play) CheckSteps(tb testing.TB) {
	tb.Helper()
	if p.wipes == p.ZK.Wipes() { // else the servers' logs lack what was lost
		p.Cluster.CheckSteps(tb, p.ZK, p.Runs(), p.alone)
	}
}

// CheckSteps fails the test where what the servers' logs have below the root, or the start of a run, is no step of docs/model. spared: a
// program may be alive whatever the steps say.
func (c *Cluster) CheckSteps(tb testing.TB, zk *zktest.Ensemble, runs []Run, spared bool) {
	tb.Helper()
	txns, ends, err := steps.Read(zk.DataDirs()...)
	must.OK(tb, err)
	claims := 0
	refused := ends.Least(txns, func(txns []steps.Txn) []string {
		refused, n := c.follow(txns, runs, spared)
		claims = max(claims, n)
		return refused
	})
	for _, text := range refused[:min(len(refused), 10)] { // the rest follows from these
		tb.Errorf("%s", text)
	}
	if len(runs) > 0 && claims == 0 {
		tb.Errorf("the servers' logs have no claim of %d runs", len(runs))
	}
}

// follow returns what is no step of one history, and how many claims that has.
func (c *Cluster) follow(txns []steps.Txn, runs []Run, spared bool) (refused []string, claims int) {
	a := steps.New(c.root)
	a.Spared = func(steps.Program) bool { return spared }
	endedByStrangers.Range(func(id, _ any) bool { a.Meddled(id.(int64)); return true })
	for _, e := range eventsOf(a, txns, runs) {
		if err := e.do(); err != nil {
			refused = append(refused, fmt.Sprintf("%v: %v", e.at.Format("15:04:05.000"), err))
		}
	}
	return refused, a.Claims()
}

// stepEvent is one of what package steps is told in turn.
type stepEvent struct {
	at   time.Time // in whole milliseconds, as in the logs
	turn int       // in a millisecond: what had ended by then, what was committed, what has started since, and ended as well
	do   func() error
}

// eventsOf orders transactions and runs. A process is dead before a transaction says so, and starts after the one that lets it.
func eventsOf(a *steps.Acceptor, txns []steps.Txn, runs []Run) (all []stepEvent) {
	clock := time.Now().Add(-time.Duration(tick.Now())) // when the runs' clock was at zero
	at := func(mono int64) time.Time { return clock.Add(time.Duration(mono)).Truncate(time.Millisecond) }
	var last time.Time
	for _, t := range txns {
		if t.At.After(last) { // else another leader's clock is behind
			last = t.At
		}
		all = append(all, stepEvent{last, 1, func() error { return a.Commit(t) }})
	}
	for _, r := range runs {
		p := func() steps.Program {
			return steps.Program{ID: r.ID, Service: a.ServiceOf(r.Token), Node: r.Node, Token: r.Token}
		}
		ended := 0
		if at(r.First).Equal(at(r.Last)) {
			ended = 3
		}
		all = append(all, stepEvent{at(r.First), 2, func() error { return a.Start(p()) }},
			stepEvent{at(r.Last), ended, func() error { a.End(p()); return nil }})
	}
	slices.SortStableFunc(all, func(x, y stepEvent) int { return cmp.Or(x.at.Compare(y.at), cmp.Compare(x.turn, y.turn)) })
	return all
}
