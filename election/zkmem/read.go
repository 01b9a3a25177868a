package zkmem

import (
	"strings"

	"understudy/election/jute"
)

// errUnknown stands for a request that the server does not know: it answers Unimplemented and hangs up.
const errUnknown jute.Code = 1

// errSilent stands for a request that the real server does, but fails to answer.
const errSilent jute.Code = 2

// read does a request that changes nothing but the caller's watches.
func (r *replica) read(c *conn, op jute.Op, body []byte) (jute.Record, jute.Code) {
	switch op {
	case jute.OpPing:
		return nil, jute.OK
	case jute.OpWhoAmI:
		return c.whoAmI(), jute.OK
	case jute.OpExists, jute.OpGetData, jute.OpGetChildren, jute.OpGetChildren2:
		var req jute.PathWatch
		if jute.Unmarshal(body, &req) != nil {
			return nil, jute.MarshallingError
		}
		if op == jute.OpExists {
			return r.exists(c, req)
		}
		return r.look(c, op, req)
	case jute.OpGetACL, jute.OpSync, jute.OpGetAllChildrenNumber, jute.OpGetEphemerals:
		var path jute.Path
		if jute.Unmarshal(body, &path) != nil {
			return nil, jute.MarshallingError
		}
		return r.ask(c, op, path)
	case jute.OpSetWatches, jute.OpSetWatches2:
		return r.setWatches(c, op, body)
	case jute.OpAddWatch, jute.OpRemoveWatches, jute.OpCheckWatches:
		var req jute.PathType
		if jute.Unmarshal(body, &req) != nil {
			return nil, jute.MarshallingError
		}
		return r.watching(c, op, req)
	}
	return nil, errUnknown
}

// exists needs no permission, and leaves its watch whether the node is there or not.
func (r *replica) exists(c *conn, req jute.PathWatch) (jute.Record, jute.Code) {
	if strings.IndexByte(req.Path, 0) >= 0 {
		return nil, jute.BadArguments
	}
	if req.Watch {
		r.watches.data.add(req.Path, c, watchOnce)
	}
	n, code := r.db.find(req.Path)
	if code != jute.OK {
		return nil, code
	}
	return n.status(), jute.OK
}

func (r *replica) look(c *conn, op jute.Op, req jute.PathWatch) (jute.Record, jute.Code) {
	n, code := r.db.find(req.Path)
	switch {
	case code != jute.OK:
		return nil, code
	case !allowed(n.acl, jute.PermRead, c.ids):
		return nil, jute.NoAuth
	}
	if req.Watch {
		set := r.watches.child
		if op == jute.OpGetData {
			set = r.watches.data
		}
		set.add(req.Path, c, watchOnce)
	}
	switch op {
	case jute.OpGetData:
		return jute.DataStat{Data: n.data, Stat: n.status()}, jute.OK
	case jute.OpGetChildren:
		return jute.Children(n.childNames()), jute.OK
	}
	return jute.ChildrenStat{Children: n.childNames(), Stat: n.status()}, jute.OK
}

func (r *replica) ask(c *conn, op jute.Op, path jute.Path) (jute.Record, jute.Code) {
	switch op {
	case jute.OpSync:
		return path, jute.OK
	case jute.OpGetEphemerals:
		var under jute.Children
		for _, p := range r.db.tree.owned(c.session) {
			if strings.HasPrefix(p, string(path)) {
				under = append(under, p)
			}
		}
		return under, jute.OK
	}
	n, code := r.db.find(string(path))
	if code != jute.OK {
		return nil, code
	}
	if op == jute.OpGetAllChildrenNumber {
		if !allowed(n.acl, jute.PermRead, c.ids) {
			return nil, jute.NoAuth
		}
		return jute.Number(r.db.tree.below(string(path))), jute.OK
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

// below counts the nodes under a path.
func (t *tree) below(path string) (n int) {
	prefix := strings.TrimSuffix(path, "/") + "/"
	for p := range t.nodes {
		if strings.HasPrefix(p, prefix) && p != "/" {
			n++
		}
	}
	return n
}

func (r *replica) setWatches(c *conn, op jute.Op, body []byte) (jute.Record, jute.Code) {
	var req jute.SetWatches2
	var err error
	if op == jute.OpSetWatches {
		err = jute.Unmarshal(body, &req.SetWatches)
	} else {
		err = jute.Unmarshal(body, &req)
	}
	if err != nil {
		return nil, jute.MarshallingError
	}
	r.watches.restore(r.db, c, req.SetWatches)
	return nil, jute.OK
}

func (r *replica) watching(c *conn, op jute.Op, req jute.PathType) (jute.Record, jute.Code) {
	if op != jute.OpAddWatch && r.watches.sets(req.Type) == nil {
		return nil, jute.MarshallingError
	}
	switch op {
	case jute.OpAddWatch:
		mode := watchMode(req.Type)
		if mode != watchPersistent && mode != watchRecursive {
			return nil, jute.MarshallingError
		}
		r.watches.add(req.Path, c, mode)
		return jute.Number(0), jute.OK
	case jute.OpCheckWatches:
		if r.watches.has(req.Path, c, req.Type) {
			return nil, jute.OK
		}
	case jute.OpRemoveWatches:
		if r.watches.remove(req.Path, c, req.Type) {
			return nil, jute.OK
		}
	}
	return nil, jute.NoWatcher
}
