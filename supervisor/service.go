package supervisor

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/child"
	"understudy/supervisor/config"
	"understudy/supervisor/failsafe"
	"understudy/supervisor/unit"
)

// service is one service on this node, over all sessions.
type service struct {
	Service             // as it is in force; only the service's own goroutine touches it
	name                string
	node                election.Node
	guard               Guard
	machine             Machine
	log                 hclog.Logger
	observer            Observer
	state               state
	since               time.Time       // when the role was taken
	cause               event           // of the newest stop
	condition           condition       // of the programs
	ill                 string          // what is wrong with them
	last                election.Member // what was said
	failure             string          // why it was given up here
	note                string          // what the other nodes should know besides
	tries               restarts
	relapses            relapses
	halted              bool       // the pause that is in force was logged
	followed            string     // the newest order to take the service that was followed
	words               *lastWords // on a term whose end is not in the history
	news                news
	unit                *unit.Unit
	token               int64     // of the newest term
	fenced              string    // how the former active was known to be dead then
	reached             event     // what led to the role
	ready               bool      // the child runs and is ready
	restarted, reloaded string    // the newest orders that were carried out
	vain                time.Time // until when a preferred node may be one that is gone: it has left a free lock alone
	promises            *failsafe.Promises
	engaged             bool          // nothing of this service is promised to others
	until               time.Duration // before that, P1 forbids a start: it was promised, and nothing proves that it is not needed
	begun               bool          // it has had its first stay, if in a former image of this process
	confirming          sync.WaitGroup

	conf     Service         // as it was last given; guarded by news.mu
	precheck config.Precheck // as it is in force; guarded by news.mu
	agent    *Agent          // this node's; nil: it has none
	agentAt  string          // where others reach it
	watchdog *Watchdog
	mortals  mortals
	removed  atomic.Bool // it is not in the config any more

	birth    election.Birth // of the service's folder, as last seen
	undead   Tree           // a tree whose death is not proved yet
	alive    string         // what of a child is seen, whose death is not proved
	stance   atomic.Int32   // what an upgrade would find
	carried  *carriedTerm   // a term that was handed over, until it goes on
	running  *unit.Carried  // its programs, until they are looked after again
	stood    election.Standing
	refused  bool         // the last term ended since the former active could not be fenced
	grave    uint64       // the epoch that undead belongs to
	process  unit.Process // the newest
	finished *child.ExitStatus
	says     chan election.Member // what the other nodes should know, newest only
}

// turn is a service's stay in one session.
type turn struct {
	sess  *election.Session
	cand  *election.Candidate
	epoch uint64
	leave <-chan struct{} // closed when all services of the session are to end
	gate  *failsafe.Gate
	lost  <-chan struct{} // of the term: closed when the lock is not ours any more
}

// errUndead says that something of a child may be alive: the session must then not be closed.
var errUndead = errors.New("the child's death is not proved")

// serve stands for election, and runs terms, until the session or the supervisor ends. It fails only with errUndead.
func (v *service) serve(ctx context.Context, t turn) error {
	v.unit.WaitUndone()
	v.unit.LoadDebts()
	first := !v.begun
	v.begun = true
	opened := takenOver
	if v.carried == nil {
		opened = sessionOpened
		v.unit.UndoAll(ctx)   // also what the end of a former session has interrupted
		if v.removed.Load() { // while there was no session, or before its turn came
			return nil
		}
	}
	if first {
		v.unit.Beside(ctx, "on_standby", v.Hooks.OnStandby, v.reason("supervisor started"))
	}
	do := v.on(opened)
	defer v.on(sessionOver)
	for trouble := time.Second; (ctx.Err() == nil || do == goOn) && v.finished == nil; trouble = min(2*trouble, 15*time.Second) {
		err := v.run(ctx, t, do)
		if errors.Is(err, errUndead) {
			return err
		}
		if err != nil && ctx.Err() == nil {
			v.log.Error("cannot stand for election, trying again", "service", v.name, "error", err, "in", trouble)
			if v.carried != nil { // P1: nobody watches its lock
				t.sess.Stop(err)
			}
			pause(ctx, trouble)
		}
		if do = stand; v.state.role == Failed { // what it rests for is not over by an answer that was lost
			do = rest
		}
		if v.carried != nil && !handing(ctx) { // it could not go on
			if ctx.Err() != nil || t.sess.Over() != nil {
				return v.drop(ctx, t)
			}
			do = goOn
		}
	}
	return nil
}

func (v *service) run(ctx context.Context, t turn, do action) (err error) {
	standing := ctx
	if do == goOn { // what runs is ended as any other term, also when that has to be at once
		var enough context.CancelFunc
		standing, enough = linger(ctx, t.leave, proofPatience)
		defer enough()
	}
	cand, birth, err := t.sess.Stand(standing, v.name, election.Order(v.Election))
	if err != nil {
		return err
	}
	cand.Inherit(v.stood)
	v.stood = election.Standing{}
	var wg sync.WaitGroup
	hearing, deaf := context.WithCancel(ctx)
	announcing, quiet := context.WithCancel(context.WithoutCancel(ctx)) // also while it stops, for as long as that takes
	v.agentAt = v.agent.address(t.sess)
	v.say() // what the former candidate was about to say is lost
	v.news.tell(func() { v.news.heeded, v.news.erased = false, false })
	wg.Go(func() { v.announce(announcing, cand) })
	wg.Go(func() { v.heed(hearing, cand) })
	wg.Go(func() { v.check(hearing) })
	wg.Go(func() { v.clearLeftover(hearing, turn{sess: t.sess, cand: cand}) })
	v.news.tell(func() { v.news.tamed = false }) // this session may have another timeout
	wg.Go(func() { v.tame(hearing, t.sess.Timeout) })
	if words := v.words; words != nil {
		v.words = nil
		wg.Go(func() { v.sayLast(hearing, cand, *words) })
	}
	defer func() {
		deaf()
		quiet()
		wg.Wait()
		if handing(ctx) {
			v.stood = cand.Standing()
			return
		}
		if v.removed.Load() { // else the session's end takes it all
			v.vanish(ctx, cand.Leave)
		} else if err != nil && ctx.Err() == nil {
			v.vanish(ctx, cand.Retreat)
			v.note = "cannot stand: " + err.Error()
			v.show()
			_ = cand.Announce(ctx, v.member()) // the next candidate says it again
		}
		v.stood = cand.Standing() // what could not be taken back is the next one's of this session
	}()
	t.cand = cand
	if do == goOn {
		if do, err = v.goOn(ctx, t); err != nil {
			return err
		}
	}
	if err := v.quarantine(ctx, t.sess, birth); err != nil {
		return err
	}
	for err == nil && ctx.Err() == nil && v.finished == nil {
		if do == rest {
			do, err = v.rest(ctx, t)
		} else {
			do, err = v.stand(ctx, t)
		}
	}
	if errors.Is(err, errReordered) {
		v.log.Info("standing in another kind of election", "service", v.name, "election", election.Order(v.Election))
		err = errors.Join(cand.Withdraw(ctx), cand.Prefer(ctx, 0))
	}
	return err
}

// vanish takes back what this node says of a service that it has no more, or cannot stand for.
func (v *service) vanish(ctx context.Context, leave func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), proofPatience)
	defer cancel()
	if err := leave(ctx); err != nil {
		v.log.Debug("what this node says of the service stays until the session ends", "service", v.name, "error", err)
	}
}

// on feeds the role machine, logs each transition, and tells what to do.
func (v *service) on(e event, facts ...any) action {
	was := v.state
	next, do := step(was, e)
	v.state = next
	if was.role != next.role {
		if next.role == Stopping || next.role == Standby {
			v.cause = e
		}
		v.since, v.reached = time.Now().UTC(), e
		v.condition, v.ill = working, ""
		if next.role == Active {
			v.condition = rising
		}
		if was.role == Active || next.role == Active || next.role == Offline {
			v.note = ""
		}
		v.stance.Store(stanceOf(next.role))
		v.log.Info("role", append([]any{"service", v.name, "from", was.role.String(), "to", next.role.String(), "reason", e.String()}, facts...)...)
		v.say()
	}
	return do
}

// heed keeps the wishes of operators and of preferred nodes current.
func (v *service) heed(ctx context.Context, cand *election.Candidate) {
	for ctx.Err() == nil {
		err := cand.Heed(ctx, func(w election.Wishes) {
			v.news.tell(func() { v.news.wishes, v.news.heeded = w, true })
		})
		if errors.Is(err, election.ErrDeleted) {
			v.news.tell(func() { v.news.erased = true })
			return
		}
		if err != nil && ctx.Err() == nil {
			v.log.Error("cannot read what operators want, trying again", "service", v.name, "error", err)
			pause(ctx, time.Second)
		}
	}
}

// quarantine waits when ZooKeeper has lost its data: there is no breadcrumb of whoever was active, so only time tells that
// its lease has ended. P5. That it was this node is no exception: another may have followed it before the loss.
func (v *service) quarantine(ctx context.Context, sess *election.Session, birth election.Birth) error {
	if v.birth != (election.Birth{}) && v.birth != birth {
		wait := sess.Longest() + v.GraceDelay
		v.log.Warn("ZooKeeper has lost its data, and with it who was active: waiting until any lease has ended", "service", v.name, "wait", wait)
		v.note = "ZooKeeper has lost its data: it waits until any lease of before has ended"
		v.say()
		if !pause(ctx, wait) {
			return context.Cause(ctx) // the next session waits again, from the start
		}
		v.note = ""
	}
	v.birth = birth
	return nil
}

// linger is a context that ends a while after leave is closed, and not with its parent.
func linger(ctx context.Context, leave <-chan struct{}, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		select {
		case <-leave:
			pause(ctx, d)
			end()
		case <-ctx.Done():
		}
	}()
	return ctx, end
}

// pause waits, and tells whether it waited to the end.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
