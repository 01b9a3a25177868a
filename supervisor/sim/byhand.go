package sim

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"understudy/election"
	"understudy/election/jute"
)

// What operators do to all of a service.

// writeFolder is an operator who writes to a service's folder, as a restore of data does: its version, which numbers the claims, is
// raised by nobody's claim.
func (w *world) writeFolder(service string) bool {
	w.say("operator: writes to the folder of %s", service)
	return w.byOperator(jute.OpSetData, jute.SetData{Path: election.Paths{Root: root, Service: service}.Dir(), Data: []byte("{}"), Version: -1})
}

// deleteService is an operator who deletes all of a service at once, unless that would break the rules: as for a loss of all data,
// each supervisor has to know the folder; and nobody deletes the breadcrumb of a failsafe service.
func (w *world) deleteService(service string) bool {
	dir := election.Paths{Root: root, Service: service}.Dir()
	for range 3 { // somebody may add something meanwhile
		w.mu.Lock()
		v := w.check.services[service]
		may, paths := !w.over && w.allKnow() && !v.crumb.failsafe.Binds(), slices.Collect(maps.Keys(v.znodes))
		w.mu.Unlock()
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
		w.say("operator: deletes all of %s", service)
		w.mu.Lock()
		before := v.deleted
		w.mu.Unlock()
		w.deleteByHand(paths, jute.OpMulti, ops)
		w.mu.Lock()
		done := v.deleted > before
		w.mu.Unlock()
		if done {
			return true
		}
	}
	w.say("operator: %s is still there", dir)
	return false
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
	if !c.w.allKnow() { // a request that was carried out late
		v.unknown = true
	}
	c.w.keepDown()
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
