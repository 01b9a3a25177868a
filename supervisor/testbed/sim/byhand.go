package sim

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"understudy/election"
	"understudy/election/jute"
)

// What operators delete and write by hand.

// writeFolder is an operator who writes to a service's folder, as a restore of data does: its version is raised by nobody's claim. Or one
// who deletes the names that transactions check, which is no excuse for what they do.
func (o *operator) writeFolder(f Fault, service string) bool {
	dir := election.Paths{Root: root, Service: service}.Dir()
	prefix := []string{"", dir + "/claim-", dir + "/record-"}[f.N%3]
	if prefix == "" || o.plan.Calm {
		o.say("operator: writes to the folder of %s", service)
		return o.byOperator(jute.OpSetData, jute.SetData{Path: dir, Data: []byte("{}"), Version: -1})
	}
	o.mu.Lock()
	paths := slices.Sorted(maps.Keys(o.check.services[service].znodes))
	o.mu.Unlock()
	var ops jute.Multi
	for _, path := range paths {
		if strings.HasPrefix(path, prefix) {
			ops = append(ops, jute.DeleteOp(path, -1))
		}
	}
	o.say("operator: deletes %d of %s*", len(ops), prefix)
	return len(ops) > 0 && o.byOperator(jute.OpMulti, ops)
}

// deleteService is an operator who deletes all of a service at once, unless that would break the rules: as for a loss of all data,
// each supervisor has to know the folder; and nobody deletes the breadcrumb of a failsafe service.
func (o *operator) deleteService(service string) bool {
	dir := election.Paths{Root: root, Service: service}.Dir()
	for range 3 { // somebody may add something meanwhile
		o.mu.Lock()
		v := o.check.services[service]
		may, paths := !o.course.over && o.nemesis.servers.allKnow() && !v.crumb.failsafe.Binds(), slices.Collect(maps.Keys(v.znodes))
		o.mu.Unlock()
		if !may || len(paths) == 0 {
			return false
		}
		slices.SortFunc(paths, func(a, b string) int {
			return cmp.Or(cmp.Compare(strings.Count(b, "/"), strings.Count(a, "/")), cmp.Compare(a, b))
		})
		var ops jute.Multi
		for _, path := range paths {
			ops = append(ops, jute.DeleteOp(path, -1))
		}
		o.say("operator: deletes all of %s", service)
		o.mu.Lock()
		before := v.deleted
		o.mu.Unlock()
		o.deleteByHand(paths, jute.OpMulti, ops)
		o.mu.Lock()
		done := v.deleted > before
		o.mu.Unlock()
		if done {
			return true
		}
	}
	o.say("operator: %s is still there", dir)
	return false
}

// operate deletes a znode by hand, in a session of its own, from a place whose network is fine.
func (o *operator) operate(path string) {
	o.say("operator: deletes %s", path)
	o.deleteByHand([]string{path}, jute.OpDelete, jute.PathVersion{Path: path, Version: -1})
}

// deleteByHand sends a request of an operator's that deletes these.
func (o *operator) deleteByHand(paths []string, op jute.Op, request jute.Record) {
	o.mu.Lock()
	o.check.hand.expect(paths, 1)
	o.mu.Unlock()
	_, unanswered := o.sendAsOperator(op, request)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.check.hand.expect(paths, -1)
	for _, session := range unanswered {
		if !o.check.sessions.over[session] {
			o.check.hand.expect(paths, 1)
			o.check.hand.late[session] = paths
		}
	}
}

// handView is what operators may delete by hand.
type handView struct {
	byHand map[string]int     // how many requests to delete it are under way
	late   map[int64][]string // what a request that was not answered may delete while its session lasts
}

// ended is told that a session is over, and with it what was sent in it.
func (hv *handView) ended(session int64) {
	hv.expect(hv.late[session], -1)
	delete(hv.late, session)
}

// expect notes what an operator's request may delete.
func (hv *handView) expect(paths []string, by int) {
	for _, path := range paths {
		hv.byHand[path] += by
	}
}

// deleteLock is an operator deleting a service's lock, unless that would break the rules.
func (o *operator) deleteLock(service string) bool {
	lock := election.Paths{Root: root, Service: service}.Lock()
	if !o.mayStrike(service, lock) {
		return false
	}
	o.operate(lock)
	return true
}

// mayStrike tells whether an operator may delete a service's lock or breadcrumb now: each guards while the other is away, so
// both have to be there. The breadcrumb has to name the session that has the lock, which is that of all that runs; while its
// holder is still fencing, nothing runs, and only the lock may go. Nor does one delete the breadcrumb of a failsafe service.
func (o *operator) mayStrike(service, path string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	v := o.check.services[service]
	if o.course.over || !v.lock.there || !v.crumb.there {
		return false
	}
	if (v.crumb.failsafe.Binds() || o.check.sessions.meddled[v.lock.owner] || o.plan.Regrants) && strings.HasSuffix(path, "ActiveBreadCrumb") {
		return false // where ZooKeeper may be gone for whoever it names, or the lock before its time, it alone tells others of that
	}
	if v.crumb.session != election.SessionName(v.lock.owner) {
		return len(v.living) == 0 && !strings.HasSuffix(path, "ActiveBreadCrumb")
	}
	for p := range v.living {
		if p.tree.session != v.lock.owner || v.struck[p.token] {
			return false
		}
	}
	return true
}

// znode notes what there is of a service. With its folder goes what the breadcrumb said: who starts a supervisor then has it wait.
func (v *serviceView) znode(c *checker, path string, kind jute.EventType) {
	if kind == jute.EventNodeCreated {
		v.placed(c, path)
	}
	if kind != jute.EventNodeDeleted {
		v.znodes[path] = true
		return
	}
	delete(v.znodes, path)
	if path != (election.Paths{Root: root, Service: v.name}).Dir() {
		return
	}
	c.w.say("zk: all of %s is deleted", v.name)
	v.deleted++
	if v.forgets > 0 && c.hand.byHand[path] == 0 { // nothing was there that could run
		return
	}
	if !c.w.nemesis.servers.allKnow() { // a request that was carried out late
		v.unknown = true
	}
	c.w.nemesis.servers.keepDown()
}

// placed looks at a place that was taken in the queue: nobody waits behind himself.
func (v *serviceView) placed(c *checker, path string) {
	queue := (election.Paths{Root: root, Service: v.name}).Queue() + "/"
	name, ok := strings.CutPrefix(path, queue)
	if !ok {
		return
	}
	session, _, _ := strings.Cut(name, "-")
	for other := range v.znodes {
		if strings.HasPrefix(other, queue+session+"-") {
			c.broken("queue", "session %s has two places in the queue of %s, %s and %s", session, v.name, strings.TrimPrefix(other, queue), name)
		}
	}
}
