package zkmem

import (
	"strings"

	"understudy/election/jute"
)

// watchMode says how long a watch lasts and how far it reaches.
type watchMode int32

const (
	watchPersistent watchMode = 0 // these two are the wire's numbers
	watchRecursive  watchMode = 1
	watchOnce       watchMode = 2
)

type watchSet map[string]map[*conn]watchMode

func (w watchSet) add(path string, c *conn, mode watchMode) {
	if w[path] == nil {
		w[path] = map[*conn]watchMode{}
	}
	w[path][c] = mode
}

func (w watchSet) drop(path string, c *conn) bool {
	if _, ok := w[path][c]; !ok {
		return false
	}
	delete(w[path], c)
	if len(w[path]) == 0 {
		delete(w, path)
	}
	return true
}

func (w watchSet) dropAll(c *conn) {
	for path := range w {
		w.drop(path, c)
	}
}

func (w watchSet) count() (n int) {
	for _, conns := range w {
		n += len(conns)
	}
	return n
}

// trigger collects the connections that have to hear of an event, and removes the watches that are used up by it. deep tells whether there
// are recursive watches.
func (w watchSet) trigger(path string, kind jute.EventType, deep bool, hear map[*conn]struct{}) {
	for c, mode := range w[path] {
		if mode == watchRecursive && kind == jute.EventNodeChildrenChanged {
			continue
		}
		hear[c] = struct{}{}
		if mode == watchOnce {
			w.drop(path, c)
		}
	}
	if kind == jute.EventNodeChildrenChanged || !deep {
		return
	}
	for up := path; up != "/"; {
		up = orRoot(up[:strings.LastIndexByte(up, '/')])
		for c, mode := range w[up] {
			if mode == watchRecursive {
				hear[c] = struct{}{}
			}
		}
	}
}

// watches are those of one server's clients. Those set by exists and getData are one kind: data.
type watches struct {
	data, child watchSet
	deep        *bool // there has been a recursive one
}

func newWatches() watches { return watches{watchSet{}, watchSet{}, new(bool)} }

// fire tells the changes of one transaction, in their order. A connection hears of a deletion once, whether it
// watches the data, the children, or both.
func (w watches) fire(changes []change) {
	hear := map[*conn]struct{}{}
	for _, ch := range changes {
		clear(hear)
		switch ch.kind {
		case jute.EventNodeChildrenChanged:
			w.child.trigger(ch.path, ch.kind, *w.deep, hear)
		case jute.EventNodeDeleted:
			w.data.trigger(ch.path, ch.kind, *w.deep, hear)
			w.child.trigger(ch.path, ch.kind, *w.deep, hear)
		default:
			w.data.trigger(ch.path, ch.kind, *w.deep, hear)
		}
		for c := range hear {
			if allowed(ch.acl, jute.PermRead, c.ids) {
				c.notify(ch.kind, ch.path)
			}
		}
	}
}

// restore puts the watches of a client back that was away since the given zxid, and fires those it missed.
func (w watches) restore(d *database, c *conn, req jute.SetWatches) {
	for _, path := range req.Data {
		n, code := d.find(path)
		switch {
		case code != jute.OK:
			c.notify(jute.EventNodeDeleted, path)
		case n.stat.Mzxid > req.RelativeZxid:
			c.notify(jute.EventNodeDataChanged, path)
		default:
			w.data.add(path, c, watchOnce)
		}
	}
	for _, path := range req.Exist {
		if _, code := d.find(path); code == jute.OK {
			c.notify(jute.EventNodeCreated, path)
		} else {
			w.data.add(path, c, watchOnce)
		}
	}
	for _, path := range req.Child {
		n, code := d.find(path)
		switch {
		case code != jute.OK:
			c.notify(jute.EventNodeDeleted, path)
		case n.stat.Pzxid > req.RelativeZxid:
			c.notify(jute.EventNodeChildrenChanged, path)
		default:
			w.child.add(path, c, watchOnce)
		}
	}
	for _, path := range req.Persistent {
		w.add(path, c, watchPersistent)
	}
	for _, path := range req.PersistentRecursive {
		w.add(path, c, watchRecursive)
	}
}

// add sets a watch of addWatch, which takes the place of those for data and for children.
func (w watches) add(path string, c *conn, mode watchMode) {
	w.data.add(path, c, mode)
	w.child.add(path, c, mode)
	*w.deep = *w.deep || mode == watchRecursive
}

// Kinds of watches as removeWatches and checkWatches number them.
const (
	watchedChildren = 1
	watchedData     = 2
	watchedAny      = 3
)

func (w watches) sets(kind int32) []watchSet {
	switch kind {
	case watchedChildren:
		return []watchSet{w.child}
	case watchedData:
		return []watchSet{w.data}
	case watchedAny:
		return []watchSet{w.child, w.data}
	}
	return nil
}

func (w watches) remove(path string, c *conn, kind int32) bool {
	removed := false
	for _, set := range w.sets(kind) {
		removed = set.drop(path, c) || removed
	}
	return removed
}

func (w watches) has(path string, c *conn, kind int32) bool {
	for _, set := range w.sets(kind) {
		if _, ok := set[path][c]; ok {
			return true
		}
	}
	return false
}

func (w watches) dropAll(c *conn) {
	w.data.dropAll(c)
	w.child.dropAll(c)
}
