package supervisor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/child"
)

// service is one service on this node, over all sessions.
type service struct {
	Service
	node    election.Node
	guard   Guard
	machine Machine
	log     hclog.Logger
	hurry   <-chan struct{}
	state   state
	cause   event // of the newest stop
	tries   restarts

	birth    election.Birth // of the service's folder, as last seen
	undead   Tree           // a tree whose death is not proved yet
	refused  bool           // the last term ended since the former active could not be fenced
	grave    uint64         // the epoch that it belongs to
	process  Process        // the newest
	finished *child.ExitStatus
	says     chan election.Member // what the other nodes should know, newest only
}

// turn is a service's stay in one session.
type turn struct {
	sess  *election.Session
	cand  *election.Candidate
	epoch uint64
}

// errUndead says that something of a child may be alive: the session must then not be closed.
var errUndead = errors.New("the child's death is not proved")

// serve stands for election, and runs terms, until the session or the supervisor ends. It fails only with errUndead.
func (v *service) serve(ctx context.Context, sess *election.Session, epoch uint64) error {
	if err := v.bury(ctx); err != nil {
		return err
	}
	do := v.on(sessionOpened)
	defer v.on(sessionOver)
	for trouble := time.Second; ctx.Err() == nil && v.finished == nil; trouble = min(2*trouble, 15*time.Second) {
		err := v.run(ctx, sess, epoch, do)
		if errors.Is(err, errUndead) {
			return err
		}
		if err != nil && ctx.Err() == nil {
			v.log.Error("cannot stand for election, trying again", "service", v.Name, "error", err, "in", trouble)
			pause(ctx, trouble)
		}
		do = stand
	}
	return nil
}

func (v *service) run(ctx context.Context, sess *election.Session, epoch uint64, do action) error {
	cand, birth, err := sess.Stand(ctx, v.Name, v.Order)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	announcing, quiet := context.WithCancel(ctx)
	wg.Go(func() { v.announce(announcing, cand) })
	defer wg.Wait()
	defer quiet()
	if err := v.quarantine(ctx, sess, birth); err != nil {
		return err
	}
	t := turn{sess, cand, epoch}
	for err == nil && ctx.Err() == nil && v.finished == nil {
		if do == rest {
			do, err = v.rest(ctx, t)
		} else {
			do, err = v.stand(ctx, t)
		}
	}
	return err
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
		v.log.Info("role", append([]any{"service", v.Name, "from", was.role.String(), "to", next.role.String(), "reason", e.String()}, facts...)...)
		v.tell(election.Member{Role: next.role.String(), Why: v.why(), Since: time.Now().UTC()})
	}
	return do
}

// why tells the other nodes what is not plain from the role.
func (v *service) why() string {
	if v.state.role == Stopping || v.state.role == Failed {
		return v.cause.String()
	}
	return ""
}

// tell leaves a message for announce, in place of an older one.
func (v *service) tell(m election.Member) {
	m.Health = "ok"
	if m.Role == Failed.String() {
		m.Health = "failed"
	}
	for {
		select {
		case v.says <- m:
			return
		case <-v.says:
		}
	}
}

// settling is how long a role has to last before it is announced: a hand-over passes through several, and the writes would
// stand in its way.
const settling = 50 * time.Millisecond

// announce keeps members/<node> current.
func (v *service) announce(ctx context.Context, cand *election.Candidate) {
	for {
		select {
		case m := <-v.says:
			if !pause(ctx, settling) {
				return
			}
			select {
			case m = <-v.says:
			default:
			}
			if err := cand.Announce(ctx, m); err != nil && ctx.Err() == nil {
				v.log.Debug("cannot announce", "service", v.Name, "error", err)
				v.tellAgain(m)
				if !pause(ctx, time.Second) {
					return
				}
			}
		case <-ctx.Done():
			return
		}
	}
}

// tellAgain keeps a message that could not be written, unless there is a newer one.
func (v *service) tellAgain(m election.Member) {
	select {
	case v.says <- m:
	default:
	}
}

// quarantine waits when ZooKeeper has lost its data: there is no breadcrumb of whoever was active, so only time tells that
// its lease has ended. P5. That it was this node is no exception: another may have followed it before the loss.
func (v *service) quarantine(ctx context.Context, sess *election.Session, birth election.Birth) error {
	if v.birth != (election.Birth{}) && v.birth != birth {
		wait := sess.Timeout() + v.Fencing.Grace
		v.log.Warn("ZooKeeper has lost its data, and with it who was active: waiting until any lease has ended", "service", v.Name, "wait", wait)
		if !pause(ctx, wait) {
			return context.Cause(ctx) // the next session waits again, from the start
		}
	}
	v.birth = birth
	return nil
}

// bury proves the death of what a former session left.
func (v *service) bury(ctx context.Context) error {
	for v.undead != nil {
		err := v.undead.End(ctx)
		if err == nil {
			v.undead = nil
			if err := v.guard.Finish(v.grave); err != nil {
				v.log.Debug("a former lease is still held", "service", v.Name, "error", err) // by another service's tree
			}
			return nil
		}
		v.log.Error("the former child is still not proved dead, nothing is started here", "service", v.Name, "error", err)
		if !pause(ctx, time.Second) {
			return fmt.Errorf("%w: %w", errUndead, err)
		}
	}
	return nil
}

// rest leaves the lock to others for a while; after a refused fencing, until that is settled at the longest.
func (v *service) rest(ctx context.Context, t turn) (action, error) {
	if err := t.cand.Withdraw(ctx); err != nil {
		return nothing, err
	}
	v.log.Warn("resting, so that another node can try", "service", v.Name, "for", v.Restart.RejoinAfter)
	enough, cancel := context.WithTimeout(ctx, v.Restart.RejoinAfter)
	defer cancel()
	if v.refused {
		v.refused = false
		if t.cand.Settled(enough) == nil {
			v.log.Info("the former active is known to be dead now", "service", v.Name)
			return v.on(rested), nil
		}
	}
	<-enough.Done()
	if ctx.Err() != nil {
		return nothing, context.Cause(ctx)
	}
	return v.on(rested), nil
}

// stand waits for the lock, takes it, and runs a term. The tree is made ready before, so that a failover finds it there.
func (v *service) stand(ctx context.Context, t turn) (action, error) {
	tree, err := v.guard.NewTree(ctx, t.epoch, v.Name, election.EncodeRelease(t.cand.Paths()))
	if err != nil {
		return nothing, fmt.Errorf("make a container for the child: %w", err)
	}
	claim, err := v.obtain(ctx, t, tree)
	if err == nil {
		return v.term(ctx, t, claim, tree)
	}
	if undead := v.end(ctx, t, tree); undead != nil {
		return nothing, undead
	}
	return nothing, err
}

// obtain returns with the lock.
func (v *service) obtain(ctx context.Context, t turn, tree Tree) (*election.Claim, error) {
	id, err := tree.ID()
	if err != nil {
		return nil, fmt.Errorf("describe the child's container: %w", err)
	}
	crumb := election.BreadCrumb{GuardianPid: v.guard.Pid(), Tree: id}
	for {
		opening, err := t.cand.Wait(ctx)
		if err != nil {
			return nil, err
		}
		v.on(lockFree)
		claim, err := t.cand.Take(ctx, opening, crumb)
		if err != nil {
			return nil, err
		}
		if claim != nil {
			return claim, nil
		}
		v.on(lockTaken)
	}
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
