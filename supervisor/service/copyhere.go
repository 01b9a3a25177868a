package service

import (
	"cmp"
	"context"
	"sync"
	"time"

	"understudy/election"
	"understudy/supervisor/control"
	"understudy/supervisor/copies"
	"understudy/supervisor/keyfile"
	"understudy/supervisor/loglimit"
	"understudy/supervisor/replica"
	"understudy/supervisor/service/role"
	"understudy/supervisor/wait"
)

// A replicated or warm service runs on every node. Here its program is a copy, which a term takes over, with its tree, to promote it. All
// that a replicated one changes for the role machine: the tree of a candidacy is the copy's, a free lock is left to the best copy, and a
// primary that has failed is not started again before the copies were compared.

// copyHere is this node's copy, over all sessions. It is nil where the service has none: compared, cold, obstacle, halt, begin, part,
// close, leave, stand, watchVacancy and free accept that.
type copyHere struct {
	*replica.Copy
	lasts   context.Context         // ends with Keep
	cease   context.CancelCauseFunc // ends Keep; nil: it has not begun
	keeps   sync.WaitGroup
	changed chan struct{} // capacity 1: there is something to tell
	warm    bool          // it has no data, and nothing is compared

	vacancy int64 // the newest one that the service has seen, since when, and when it warned of it, and how
	vacant  time.Time
	warned  time.Time
	warning string

	obeyed *obeyed // the newest order for this copy

	saidSeen time.Time // when it was last told that others do not reach the primary
	doubts   loglimit.Line

	mu        sync.Mutex // guards the fields below
	stands    bool       // this node would take the lock
	token     int64      // of the term in which the copy is the primary; 0: it is not
	verdict   verdictOf
	again     again
	outside   outside
	followers followers
}

// verdictOf is which copy may be promoted in a vacancy.
type verdictOf struct {
	copies.Verdict
	vacancy int64  // 0: somebody holds the lock, or the copies were not compared yet
	claims  string // the newest one then
	beside  bool   // a breadcrumb: the previous primary may not have been dead
}

// newCopyHere makes the copy of a replicated service; nil: it is not one.
func newCopyHere(node *LocalNode, conf Conf, v *Service) *copyHere {
	if conf.Replicated == nil {
		return nil
	}
	store := node.Copies
	if store == nil {
		store = func(service, dir string) replica.Store {
			return &keyfile.Store{Dir: dir, Name: replica.FileName(node.Cluster, node.Self.Node, service), Durable: true}
		}
	}
	c := &copyHere{
		warm: conf.Warm != nil, changed: make(chan struct{}, 1),
		doubts: loglimit.Line{Log: v.log, Words: "the report of a node's copy is not believed", Window: doubtEvery},
	}
	c.Copy = replica.New(replica.Config{
		Service: conf.Name, Node: node.Self.Node, Unit: v.unit, Commands: node.Commands, Logger: v.log,
		News:  func() { c.told(v.inbox.news) },
		Store: func(dir string) replica.Store { return store(conf.Name, dir) },
	}, conf.Service)
	return c
}

// told has what is told of the copy looked at.
func (c *copyHere) told(n news) {
	if c.warm {
		n.wake()
		return
	}
	wait.Poke(c.changed)
}

// compared reports whether the copies are compared before one is promoted.
func (c *copyHere) compared() bool { return c != nil && !c.warm }

// cold is why a warm program cannot be promoted at once; "": it can, or there is none.
func (c *copyHere) cold() (why string, starting bool) {
	if c == nil || !c.warm {
		return "", false
	}
	ready, starting := c.Ready()
	if ready {
		return "", false
	}
	if shown := c.Shown(); shown.Why == replica.Starting && shown.Ill != "" {
		return shown.Why + ", " + shown.Ill, starting
	}
	return cmp.Or(c.Shown().Why, "its program does not stand by"), starting
}

// obstacle adds that this node leaves the lock to others until its warm program is ready: nothing would be so sooner. One that does not run
// at all is started once this node has the lock, if no other one takes that.
func (c *copyHere) obstacle(obstacle role.Obstacle, why string) (role.Obstacle, string) {
	if cold, starting := c.cold(); obstacle == role.NoObstacle && starting {
		return role.CannotStart, cold
	}
	return obstacle, why
}

// unfit is why this node is no good target; "": as far as the copy goes it is one.
func (c *copyHere) unfit() string {
	if why := c.Fails(); why != "" {
		return "its copy cannot follow the primary: " + why
	}
	why, _ := c.cold()
	return why
}

// halt has a warm program not run at all where it may not be promoted before an operator, or the config, allows it.
func (c *copyHere) halt(obstacle role.Obstacle, stopped bool, why string) {
	switch {
	case c == nil, !c.warm, obstacle == role.OrdersUnknown:
	case stopped, obstacle == role.Drained, obstacle == role.Ineligible:
		c.Halt(why)
	default:
		c.Halt("")
	}
}

// begin runs the copy, once nothing is left of a previous supervisor's. It runs on over the sessions.
func (c *copyHere) begin() {
	if c == nil || c.cease != nil {
		return
	}
	ctx, cease := context.WithCancelCause(context.Background())
	c.lasts, c.cease, c.obeyed = ctx, cease, nil
	c.keeps.Go(func() { c.Keep(ctx) })
}

// part has nobody run the copy, whose programs run on, until the next image of this process, or begin, does.
func (c *copyHere) part() {
	if c != nil && c.cease != nil {
		c.cease(replica.ErrParting)
		c.keeps.Wait()
		c.cease = nil
	}
}

// close ends the copy.
func (c *copyHere) close() {
	switch {
	case c == nil:
	case c.cease != nil:
		c.cease(nil)
		c.keeps.Wait()
	default: // its programs may run, for an upgrade that has failed
		over, cease := context.WithCancel(context.Background())
		cease()
		c.Keep(over)
	}
}

// leave closes it where its service was removed, before a namesake starts a program. If that hangs, the session does not wait for it.
func (c *copyHere) leave(s Session) {
	closed := make(chan struct{})
	go func() { defer close(closed); c.close() }()
	select {
	case <-closed:
	case <-s.Ended():
	case <-s.Leave:
	}
}

// stand says whether this node would take the lock.
func (c *copyHere) stand(yes bool) {
	if c != nil {
		c.mu.Lock()
		changed := c.stands != yes
		c.stands = yes
		c.mu.Unlock()
		if changed {
			wait.Poke(c.changed)
		}
	}
}

// primary says under which token the copy is the primary; 0: it is not.
func (c *copyHere) primary(token int64) {
	c.mu.Lock()
	c.token = token
	c.mu.Unlock()
	wait.Poke(c.changed)
}

func (c *copyHere) said() (stands bool, token int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stands, c.token
}

// at is how far the copy is, for the heartbeat.
func (c *copyHere) at() (election.At, bool) {
	at, ok := c.At()
	return election.At{Token: at.Token, Position: at.Position, Time: at.Time.UTC()}, ok
}

// local is this node's copy, for its metrics.
func (c *copyHere) local() control.CopyStatus {
	shown := c.Shown()
	one := control.CopyStatus{Is: string(shown.Role), Promotion: shown.Followed, Sees: c.seenPrimary()}
	if _, token := c.said(); token != 0 {
		one.Is, one.Promotion, one.Sees = control.CopyPrimary, token, nil
	}
	if at, ok := c.at(); ok && at.Token == one.Promotion {
		one.Position, one.Asked = &at.Position, &at.Time
	}
	return one
}

func (c *copyHere) judged() verdictOf {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.verdict
}

// noteVerdict notes a verdict, and reports whether it is a new one.
func (c *copyHere) noteVerdict(now verdictOf) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.verdict
	c.verdict = now
	return was != now
}

// leavesToOtherCopy decides whether this node leaves a free lock to another one's copy for now, because of the copies' data.
func (c *candidacy) leavesToOtherCopy() bool {
	v := c.v
	c.beside = true // unless the newest comparison says otherwise
	if c.opening.Ours() {
		return false
	}
	verdict := v.copy.judged()
	if verdict.Why == "" {
		v.view.unpromoted, v.copy.warning = "", ""
	}
	if verdict.vacancy != 0 && verdict.Node == v.node.Self.Node {
		if verdict.Forced {
			by, stands := v.inbox.intents.forcesCopy(time.Now())
			if !stands { // it was taken back since the copies were compared
				c.waits = time.Now().Add(leaveFor)
				return true
			}
			v.log.Warn("an operator has this node's copy promoted, whatever data others have", "by", by)
		}
		c.opening, c.beside = c.opening.After(verdict.claims), verdict.beside
		return false
	}
	if now := time.Now(); verdict.vacancy != 0 && verdict.Why != "" && now.Sub(v.copy.since(verdict.vacancy)) > sayAfter {
		if v.copy.warns(verdict.Why, now) {
			v.log.Warn("no copy is promoted", "why", verdict.Why)
		}
		v.view.unpromoted = verdict.Why
		v.view.announceChange()
	}
	c.waits = time.Now().Add(leaveFor)
	return true
}

const (
	sayAfter  = 2 * time.Second // a vacancy that lasts longer is told
	warnEvery = 10 * time.Second
)

// warns reports whether the log has to give this reason now. The newest reason is logged in the end, however often it changed before.
func (c *copyHere) warns(why string, now time.Time) bool {
	if why == c.warning || now.Sub(c.warned) <= warnEvery {
		return false
	}
	c.warned, c.warning = now, why
	return true
}

// since is when a vacancy was seen first.
func (c *copyHere) since(vacancy int64) time.Time {
	if c.vacancy != vacancy {
		c.vacancy, c.vacant = vacancy, time.Now()
	}
	return c.vacant
}

// leaveFor is how long a free lock is left to others, unless the copies are compared anew.
const leaveFor = time.Second

// free lets the copy come back as a follower: the term's tree is proved dead.
func (c *copyHere) free() {
	if c != nil {
		c.Free()
	}
}
