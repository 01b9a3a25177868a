package zkmem

import (
	"strings"

	"understudy/election/jute"
)

// Read does a request of a client that changes nothing but its watches.
func (d *Data) Read(w Watches, c *Client, op jute.Op, body []byte) (jute.Record, jute.Code) {
	switch op {
	case jute.OpPing:
		return nil, jute.OK
	case jute.OpExists, jute.OpGetData, jute.OpGetChildren, jute.OpGetChildren2:
		var req jute.PathWatch
		if jute.Unmarshal(body, &req) != nil {
			return nil, jute.MarshallingError
		}
		if op == jute.OpExists {
			return d.exists(w, c, req)
		}
		return d.look(w, c, op, req)
	case jute.OpGetACL, jute.OpSync:
		var path jute.Path
		if jute.Unmarshal(body, &path) != nil {
			return nil, jute.MarshallingError
		}
		if op == jute.OpSync {
			return path, jute.OK
		}
		return d.getACL(c, path)
	case jute.OpSetWatches:
		var req jute.SetWatches
		if jute.Unmarshal(body, &req) != nil {
			return nil, jute.MarshallingError
		}
		w.restore(d, c, req)
		return nil, jute.OK
	}
	return nil, jute.Unimplemented
}

// exists needs no permission, and leaves its watch whether the node is there or not.
func (d *Data) exists(w Watches, c *Client, req jute.PathWatch) (jute.Record, jute.Code) {
	if strings.IndexByte(req.Path, 0) >= 0 {
		return nil, jute.BadArguments
	}
	if req.Watch {
		w.data.add(req.Path, c)
	}
	n, code := d.find(req.Path)
	if code != jute.OK {
		return nil, code
	}
	return n.status(), jute.OK
}

func (d *Data) look(w Watches, c *Client, op jute.Op, req jute.PathWatch) (jute.Record, jute.Code) {
	n, code := d.find(req.Path)
	switch {
	case code != jute.OK:
		return nil, code
	case !allowed(n.acl, jute.PermRead, c.ids):
		return nil, jute.NoAuth
	}
	if req.Watch {
		set := w.child
		if op == jute.OpGetData {
			set = w.data
		}
		set.add(req.Path, c)
	}
	switch op {
	case jute.OpGetData:
		return jute.DataStat{Data: n.data, Stat: n.status()}, jute.OK
	case jute.OpGetChildren:
		return jute.Children(n.childNames()), jute.OK
	}
	return jute.ChildrenStat{Children: n.childNames(), Stat: n.status()}, jute.OK
}

func (d *Data) getACL(c *Client, path jute.Path) (jute.Record, jute.Code) {
	n, code := d.find(string(path))
	if code != jute.OK {
		return nil, code
	}
	acl := n.acl
	if acl == nil {
		acl = jute.WorldACL(jute.PermAll)
	}
	switch {
	case !allowed(acl, jute.PermRead|jute.PermAdmin, c.ids):
		return nil, jute.NoAuth
	case !allowed(acl, jute.PermAdmin, c.ids):
		acl = masked(acl)
	}
	return jute.ACLStat{ACL: acl, Stat: n.status()}, jute.OK
}
