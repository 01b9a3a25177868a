package service

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/fencing"
	"understudy/fencing/agent"
	"understudy/supervisor/child/box"
	"understudy/supervisor/host"
	"understudy/supervisor/service/role"
)

// Without a configured method the previous active's agent is asked while the grace delay lasts.
func TestAgentIsAskedWhereNothingIsConfigured(t *testing.T) {
	mine, his := &agent.Method{}, &election.BreadCrumb{Agent: "a:1"}
	exec := []fencing.Step{{Method: fencing.Exec{}, Timeout: time.Second}}
	for name, c := range map[string]struct {
		ask   *agent.Method
		conf  Conf
		crumb *election.BreadCrumb
		grace time.Duration
		want  string
		limit time.Duration
	}{
		"asked":         {ask: mine, crumb: his, grace: 8 * time.Second, want: "agent", limit: 8 * time.Second},
		"no grace":      {ask: mine, crumb: his, want: "agent", limit: askAtLeast},
		"we have none":  {crumb: his},
		"he has none":   {ask: mine, crumb: &election.BreadCrumb{}},
		"a method":      {ask: mine, conf: Conf{Fence: exec}, crumb: his, want: "exec", limit: time.Second},
		"none has none": {crumb: &election.BreadCrumb{}},
	} {
		v := made(t, c.conf, func(n *LocalNode) { n.AskAgent = c.ask })
		steps, _ := (&candidacy{v: v}).steps(c.crumb, c.grace)
		got, limit := "", time.Duration(0)
		if len(steps) > 0 {
			got, limit = steps[0].Method.Name(), steps[0].Timeout
		}
		if got != c.want || limit != c.limit || len(steps) > 1 {
			t.Errorf("%s: %q for %v", name, got, limit)
		}
	}
}

// clock is a machine that has nothing but a clock.
type clock struct {
	empty
	began time.Time
}

func (c clock) Now() time.Duration { return time.Hour + time.Since(c.began) }

// A promise is waited out, unless an operator confirms the death.
func TestOwnPromiseIsSatOut(t *testing.T) {
	for name, confirm := range map[string]time.Duration{"to its end": 0, "confirmed": time.Second} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			stay := made(t, Conf{}, func(n *LocalNode) { n.Machine = clock{began: began} }).testStay(t.Context(), Session{}, nil)
			stay.term.until = time.Hour + 5*time.Second
			if err := stay.term.mayStart(); !errors.Is(err, errPromised) {
				t.Errorf("%s: started meanwhile: %v", name, err)
			}
			confirmed, want := make(chan struct{}), 5*time.Second
			if confirm > 0 {
				want = confirm
				time.AfterFunc(confirm, func() { close(confirmed) })
			}
			if err := stay.term.sitOut(t.Context(), confirmed); err != nil || time.Since(began) != want {
				t.Errorf("%s: waited %v: %v", name, time.Since(began), err)
			}
			if err := stay.term.mayStart(); err != nil {
				t.Errorf("%s: not started afterwards: %v", name, err)
			}
			over := errors.New("over")
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(over)
			stay.term.until = 2 * time.Hour
			if err := stay.term.sitOut(ctx, nil); !errors.Is(err, over) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// P1: who was never asked for a promise cannot take a delay for a proof, nor can anybody where an effect is left. Else the delay is as long
// as this node's promise.
func TestNoDelayIsAProofForWhoWasNeverAsked(t *testing.T) {
	me := election.Peer{Node: "a", Machine: "m1", Agent: "a:1"}
	goesOn := func(members ...election.Peer) *election.BreadCrumb {
		return &election.BreadCrumb{LeaseMs: 6000, Failsafe: &election.Failsafe{Members: members}}
	}
	for name, c := range map[string]struct {
		crumb *election.BreadCrumb
		no    bool
		grace time.Duration
	}{
		"it needs nobody's":   {&election.BreadCrumb{LeaseMs: 6000}, false, 2 * time.Second},
		"it lists this node":  {goesOn(me), false, 4 * time.Second},
		"it lists another":    {goesOn(election.Peer{Node: "b", Machine: "m2", Agent: "b:1"}), true, 2 * time.Second},
		"an effect is left":   {&election.BreadCrumb{LeaseMs: 6000, Effects: election.Effects{Left: election.EffectsLeft{"vip"}}}, true, 2 * time.Second},
		"and it lists us all": {&election.BreadCrumb{LeaseMs: 6000, Failsafe: &election.Failsafe{Members: []election.Peer{me}}, Effects: election.Effects{Left: election.EffectsLeft{"vip"}}}, true, 2 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			v := made(t, Conf{}, func(n *LocalNode) { n.Machine = clock{began: time.Now()} })
			v.view.agent = me.Agent
			v.node.Promises.Listening(time.Hour - 10*time.Second)
			if err := v.node.Promises.Give(agent.PromiseRequest{Service: "db", Token: 41, By: "b", Of: "c", For: 4 * time.Second}, time.Hour); err != nil {
				t.Fatal(err)
			}
			if c.crumb.Failsafe == nil && !c.no { // of another term, which binds all the same
				c.grace = 4 * time.Second
			}
			chain := fencing.Chain{Grace: 2 * time.Second}
			if _, err := (&candidacy{v: v}).delay(&chain, c.crumb); chain.NoDelay != c.no || (err != nil) != c.no || chain.Grace != c.grace {
				t.Errorf("%s: no delay %v (%v), grace %v", name, chain.NoDelay, err, chain.Grace)
			}
		})
	}
}

// P1: the proof of one death ends the promise to that term, and no other.
func TestAProofEndsOnePromise(t *testing.T) {
	v := made(t, Conf{}, nil)
	for token, length := range map[int64]time.Duration{41: 9 * time.Second, 57: 5 * time.Second} {
		if err := v.node.Promises.Give(agent.PromiseRequest{Service: "db", Token: token, By: "b", Of: "c", For: length}, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	for by, want := range map[string]time.Duration{fencing.ByGrace: 7 * time.Second, "agent": time.Hour + 5*time.Second} {
		if got := (&candidacy{v: v}).boundAfter(fencing.Outcome{By: by}, 7*time.Second, 41); got != want {
			t.Errorf("%s: bound until %v, want %v", by, got, want)
		}
	}
}

// proving is a method that does something, and proves what it was asked to.
type proving func()

func (proving) Name() string { return "proving" }

func (p proving) Fence(context.Context, fencing.Target) error { p(); return nil }

// seenBy is a log that calls seen for each line.
type seenBy func(line string)

func (f seenBy) Write(line []byte) (int, error) { f(string(line)); return len(line), nil }

// P5: a proof is of what the breadcrumb said when it was asked for. If that changes while the proof is on its way, it proves nothing.
func TestAProofIsOfWhatTheBreadcrumbSaysInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := newEnsemble(t)
		defer zk.server.Close()
		here := zk.self
		zk.self = election.Node{Node: "b", Host: "b", Machine: "m2", Boot: "b2"}
		zk.session(func(ctx context.Context, s *election.Session) error {
			_, claim := zk.take(ctx, s)
			return claim.Inscribe(ctx)
		})
		zk.self = here
		read, once := make(chan struct{}), sync.Once{}
		zk.log = hclog.New(&hclog.LoggerOptions{Output: seenBy(func(line string) {
			if strings.Contains(line, "the breadcrumb cannot be read") {
				once.Do(func() { close(read) })
				time.Sleep(time.Second) // the proof is there before anything is done about what was read
			}
		})})
		zk.session(func(ctx context.Context, s *election.Session) error {
			_, claim := zk.take(ctx, s)
			proof := proving(func() {
				zk.byHand(election.Paths{Root: "/understudy", Service: "db"}.Crumb(), "of whoever")
				<-read
			})
			stay := made(t, Conf{Fence: []fencing.Step{{Method: proof, Timeout: time.Minute}}},
				func(n *LocalNode) { n.Machine = clock{began: zk.began} }).testStay(ctx, Session{Session: s}, nil)
			stay.term.claim = claim
			if fenced, err := stay.term.ensureDead(ctx); !errors.Is(err, fencing.ErrRefused) {
				t.Errorf("a breadcrumb of which nothing is proved was overwritten: %+v, %v", fenced, err)
			}
			return nil
		})
	})
}

// P1: whatever the breadcrumb says, nothing is started beside what a previous supervisor has left here.
func TestNothingIsStartedBesideALeftover(t *testing.T) {
	l := &box.Leftover{Pid: 7, Program: "db", State: "D (disk sleep)"}
	v := made(t, Conf{}, func(n *LocalNode) {
		n.Guard = func() host.Guard { return haunted{left: func() *box.Leftover { return l }} }
	})
	stay := v.testStay(t.Context(), Session{}, nil)
	err := (&candidacy{v: v}).alone(t.Context())
	if e := stay.term.refusal(t.Context(), err); e != (role.Event{Kind: role.PreviousAlive}) || v.mem.lastTerm.failure == "" { // it does not rest until that is settled
		t.Errorf("%v: %+v, %q", err, e, v.mem.lastTerm.failure)
	}
	l = nil
	if err := (&candidacy{v: v}).alone(t.Context()); err != nil {
		t.Error(err)
	}
}

// A refused fencing says whether somebody else may settle it: that is so only if the previous active could not be fenced.
func TestARefusalSaysWhatItIs(t *testing.T) {
	stay := made(t, Conf{}, nil).testStay(t.Context(), Session{}, nil)
	for err, want := range map[error]role.Event{
		fencing.ErrRefused: {Kind: role.PreviousAlive, BackOffUntilProof: true}, errLeftHere: {Kind: role.PreviousAlive}, errPaused: {Kind: role.PauseAsked},
		election.ErrLost: {Kind: role.LockLost},
	} {
		if e := stay.term.refusal(t.Context(), err); e != want {
			t.Errorf("%v: %+v, want %+v", err, e, want)
		}
	}
}

// The breadcrumb says that a child is alive only if it was seen; a node that did not answer proves nothing.
func TestOnlyWhoIsSeenAliveIsSaidToBe(t *testing.T) {
	seen := &box.AliveError{Leftover: box.Leftover{Pid: 7}, Err: box.ErrUnproved}
	for err, said := range map[error]bool{
		errors.Join(fencing.ErrRefused, seen):                    true,
		errors.Join(fencing.ErrRefused, fencing.ErrAlive):        true,
		errors.Join(fencing.ErrRefused, errors.New("no answer")): false,
		errors.Join(election.ErrLost, seen):                      false,
		nil:                                                      false,
	} {
		if seenAlive(err) != said {
			t.Errorf("%v: said %v", err, !said)
		}
	}
}

// The history tells an overlap that an operator caused by the word of fencing.
func TestTheHistoryKnowsAConfirmation(t *testing.T) {
	for story, want := range map[string]bool{
		fencing.Outcome{By: fencing.ByConfirmed}.Story(): true,
		fencing.Outcome{By: fencing.ByConfirmed, Attempts: []fencing.Attempt{{Method: "ssh", Err: errors.New("refused")}}}.Story(): true,
		fencing.Outcome{By: fencing.ByGrace}.Story(): false, string(election.NoBreadcrumb): false, "": false,
	} {
		if got := election.Proof(story).Confirmed(); got != want {
			t.Errorf("%q: %v", story, got)
		}
	}
}
