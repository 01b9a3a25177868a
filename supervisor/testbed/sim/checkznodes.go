package sim

import (
	"encoding/json"
	"strings"
	"time"

	"understudy/election"
	"understudy/election/jute"
	"understudy/supervisor/testbed/zkfaults"
)

// committed is told each transaction of ZooKeeper.
func (c *checker) committed(t zkfaults.Commit) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if t.Rewound {
		c.rewound(t.Changes)
		return
	}
	c.steps.committed(t)
	if t.Ended != 0 {
		c.sessions.ended(t.Ended)
		c.hand.ended(t.Ended)
		if t.Expired {
			c.w.say("zk: session %s expires", election.SessionName(t.Ended))
			c.effects.expired[t.Ended] = true
			c.expired(t.Ended)
		} else {
			c.w.say("zk: session %s is closed", election.SessionName(t.Ended))
		}
	}
	for _, ch := range t.Changes {
		if node, ok := strings.CutPrefix(ch.Path, election.NodesDir(root)+"/"); ok {
			c.sessions.belongs(node, ch.Stat.EphemeralOwner)
		}
		c.drains.changed(ch)
		service, what := splitPath(ch.Path)
		if c.hand.byHand[ch.Path] > 0 && ch.Kind == jute.EventNodeDeleted && c.services[service] != nil {
			c.strike(c.services[service])
		}
		if v := c.services[service]; v != nil {
			v.znode(c, ch.Path, ch.Kind)
			switch what {
			case "ActiveStandbyElectorLock":
				vacated := c.robbed(v, t, ch)
				if was := v.lock; ch.Kind == jute.EventNodeDeleted {
					c.effects.lockGone(service, was, t.Ended != 0 || vacated)
				}
				c.lockChanged(v, ch, t.Expired || vacated)
			case "ActiveBreadCrumb":
				c.crumbChanged(v, ch)
			case "control":
				v.orders = orders{}
				if ch.Kind != jute.EventNodeDeleted {
					v.orders = orders{election.ParseControl(ch.Data), ch.Stat.Version}
				}
				v.paused = v.orders.Paused
			default:
				if node, ok := strings.CutPrefix(what, "members/"); ok {
					v.member(node, ch)
				}
				if strings.HasPrefix(what, "history/") {
					v.entry(ch)
				}
			}
		}
	}
}

// member takes what a node says of itself.
func (v *serviceView) member(node string, ch zkfaults.ZnodeChange) {
	delete(v.members, node)
	var m election.Member
	if ch.Kind != jute.EventNodeDeleted && json.Unmarshal(ch.Data, &m) == nil {
		if m.Role == "stopping" && v.members[node].Role != m.Role {
			v.moving = time.Now()
		}
		v.members[node] = m
	}
}

// entry takes what the history has of an activation, and why that ended.
func (v *serviceView) entry(ch zkfaults.ZnodeChange) {
	delete(v.history, ch.Path)
	var a election.Activation
	if ch.Kind == jute.EventNodeDeleted || json.Unmarshal(ch.Data, &a) != nil {
		return
	}
	v.history[ch.Path] = a
	if a.End != nil {
		v.ends[a.Token] = string(a.Reason)
	}
}

func splitPath(path string) (service, what string) {
	rest, ok := strings.CutPrefix(path, root+"/services/")
	if !ok {
		return "", ""
	}
	service, what, _ = strings.Cut(rest, "/")
	return service, what
}

// expired looks at P3. A session that ends before its node's lease, as servers may have it, is like one that a stranger ends.
func (c *checker) expired(session int64) {
	if c.sight.leaseStands(session) {
		c.sessions.meddle(session)
	}
	if c.sessions.meddled[session] {
		return
	}
	for _, v := range c.services {
		for _, p := range inOrder(v.living) {
			if p.tree.session == session && !c.spared(v, p) && !c.sight.mayOutlast(v, p) {
				c.broken("P3", "session %s expired while %v was alive", election.SessionName(session), p)
			}
		}
	}
}

// lockChanged looks at P2.
func (c *checker) lockChanged(v *serviceView, ch zkfaults.ZnodeChange, expired bool) {
	was := v.lock
	v.lock = lockView{ch.Kind != jute.EventNodeDeleted, ch.Stat.EphemeralOwner, ch.Stat.Czxid, ch.Stat.Czxid}
	if v.lock.there {
		again := c.takenAgain(v, ch)
		c.sessions.owns(v.lock.owner)
		if !was.there {
			v.taken[holder(ch)]++
			c.drainedTakes(v, holder(ch))
		}
		if v.claims++; v.paused && !was.there && !again {
			c.broken("pause", "the lock of %s is taken, though it is paused", v.name)
		}
		return
	}
	c.w.say("zk: the lock of %s is gone", v.name)
	for _, p := range inOrder(v.living) {
		if (p.tree.session == was.owner || p.token == was.token && was.token != was.czxid) && !v.struck[was.token] && !c.sessions.endedByStranger(was.owner) && !(expired && (c.spared(v, p) || c.sight.mayOutlast(v, p))) {
			c.broken("P2", "the lock of %s was given back while %v was alive", v.name, p)
		}
	}
}

// holder is the node that a lock names.
func holder(ch zkfaults.ZnodeChange) string {
	var l election.Lock
	_ = json.Unmarshal(ch.Data, &l)
	return l.Node
}

func (c *checker) crumbChanged(v *serviceView, ch zkfaults.ZnodeChange) {
	was := v.crumb
	v.crumb = crumbView{}
	if ch.Kind != jute.EventNodeDeleted {
		var b election.BreadCrumb
		v.crumb.there = true
		if err := json.Unmarshal(ch.Data, &b); err == nil {
			_ = json.Unmarshal(b.Tree, &v.crumb.tree)
			v.crumb.node, v.crumb.session, v.crumb.failsafe, v.crumb.leftover = b.Node, b.Session, b.Failsafe, b.Leftover.Known
			v.crumb.left = len(b.Left) > 0
			v.crumb.promised = election.PromiseLength(time.Duration(b.LeaseMs) * time.Millisecond)
		}
	}
	if !was.there || was.tree == v.crumb.tree {
		if v.crumb.leftover && !was.leftover {
			c.tally.leftovers++
			c.w.say("zk: the breadcrumb of %s says that something of session %s is alive", v.name, v.crumb.session)
		}
		if v.crumb.left && !was.left {
			c.w.say("zk: the breadcrumb of %s says that effects of session %s are left", v.name, v.crumb.session)
		}
		return
	}
	if !v.crumb.there {
		c.swornDead(v, was.tree)
	}
	c.effects.crumbGone(v.name, was, v.crumb)
	c.w.say("zk: the breadcrumb of %s names session %s and no longer %s", v.name, v.crumb.session, was.session)
	for _, p := range inOrder(v.living) {
		if p.tree.id != was.tree || v.struck[p.token] {
			continue
		}
		// One that is held by its kernel may be outlasted, but neither vouched for nor overlooked on its own machine; nor by whoever
		// could read that it is alive.
		if !v.crumb.there || !c.spared(v, p) || v.crumb.tree.Boot == was.tree.Boot || was.leftover {
			c.broken("P2", "the breadcrumb of %s left %v, which was alive", v.name, p)
		}
	}
}
