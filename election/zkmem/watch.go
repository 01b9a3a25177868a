package zkmem

import "understudy/election/jute"

type watchSet map[string]map[*Client]struct{}

func (w watchSet) add(path string, c *Client) {
	if w[path] == nil {
		w[path] = map[*Client]struct{}{}
	}
	w[path][c] = struct{}{}
}

func (w watchSet) drop(path string, c *Client) {
	delete(w[path], c)
	if len(w[path]) == 0 {
		delete(w, path)
	}
}

func (w watchSet) dropAll(c *Client) {
	for path := range w {
		w.drop(path, c)
	}
}

// trigger collects the clients that have to hear of an event, and removes the watches, which are used up by it.
func (w watchSet) trigger(path string, hear map[*Client]struct{}) {
	for c := range w[path] {
		hear[c] = struct{}{}
		w.drop(path, c)
	}
}

// Watches are those of one server's clients. Those set by exists and getData are one kind: data.
type Watches struct{ data, child watchSet }

// NewWatches makes an empty set.
func NewWatches() Watches { return Watches{watchSet{}, watchSet{}} }

// Fire tells the changes of one transaction, in their order. A client hears of a deletion once, whether it watches the data,
// the children, or both.
func (w Watches) Fire(changes []Change) {
	hear := map[*Client]struct{}{}
	for _, ch := range changes {
		clear(hear)
		if ch.Kind != jute.EventNodeChildrenChanged {
			w.data.trigger(ch.Path, hear)
		}
		if ch.Kind == jute.EventNodeChildrenChanged || ch.Kind == jute.EventNodeDeleted {
			w.child.trigger(ch.Path, hear)
		}
		for c := range hear {
			if allowed(ch.acl, jute.PermRead, c.ids) {
				c.notify(ch.Kind, ch.Path)
			}
		}
	}
}

// restore puts the watches of a client back that was away since the given zxid, and fires those it missed.
func (w Watches) restore(d *Data, c *Client, req jute.SetWatches) {
	for _, path := range req.Data {
		n, code := d.find(path)
		switch {
		case code != jute.OK:
			c.notify(jute.EventNodeDeleted, path)
		case n.stat.Mzxid > req.RelativeZxid:
			c.notify(jute.EventNodeDataChanged, path)
		default:
			w.data.add(path, c)
		}
	}
	for _, path := range req.Exist {
		if _, code := d.find(path); code == jute.OK {
			c.notify(jute.EventNodeCreated, path)
		} else {
			w.data.add(path, c)
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
			w.child.add(path, c)
		}
	}
}

// Drop forgets the watches of a client.
func (w Watches) Drop(c *Client) {
	w.data.dropAll(c)
	w.child.dropAll(c)
}
