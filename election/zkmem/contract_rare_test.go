package zkmem_test

import (
	"errors"
	"testing"

	"understudy/election/jute"
)

func TestContractZxidsOfAnswersThatAreNoneOfTheTreesBusiness(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c := s.client(t).mark()
		for _, q := range []request{auth("digest", "a:b"), auth("ip", "")} {
			if h, err := c.Call(q.op, q.body, nil); h.Zxid != 0 || err != nil {
				t.Errorf("%v is answered at %#x, %v", q.op, h.Zxid, err)
			}
		}
		if h, err := c.Call(99, nil, nil); h.Zxid != -1 || !errors.Is(err, jute.Unimplemented) {
			t.Errorf("the unknown is answered at %#x, %v", h.Zxid, err)
		}
	})
}

func TestContractSyncAsksForNoNode(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c := s.client(t)
		for _, path := range []string{"/none", "nonsense/", ""} {
			c.want(request{jute.OpSync, jute.Path(path), showPath}, "ok "+path)
		}
	})
}

func TestContractWatchKindsThatAreNoneAreRefused(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c := s.client(t)
		for _, op := range []jute.Op{jute.OpAddWatch, jute.OpRemoveWatches, jute.OpCheckWatches} {
			c.want(request{op: op, body: jute.PathType{Path: s.root, Type: 9}}, "marshalling error")
		}
		c.want(get(s.root, true), `ok ""`)
		c.want(request{op: jute.OpRemoveWatches, body: jute.PathType{Path: s.root, Type: 1}}, "no watcher")
		c.want(request{op: jute.OpRemoveWatches, body: jute.PathType{Path: s.root, Type: 2}}, "ok")
		c.do(set(s.root, "", -1))
		c.want(ping, "ok")
	})
}

func TestContractSetWatches2BringsPersistentWatchesBack(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c, w := s.client(t).mark(), s.client(t)
		var req jute.SetWatches2
		req.RelativeZxid, req.Data = c.base, []string{s.root}
		req.Persistent, req.PersistentRecursive = []string{s.root + "/p"}, []string{s.root + "/r"}
		w.want(request{op: jute.OpSetWatches2, body: req}, "ok")
		for _, path := range []string{"/p", "/r", "/r/x"} {
			c.want(create(s.root+path, ""), "ok "+s.root+path)
			c.do(set(s.root+path, "", -1))
		}
		w.want(sync, "created "+s.root+"/p; changed "+s.root+"/p; created "+s.root+"/r; changed "+s.root+"/r; "+
			"created "+s.root+"/r/x; changed "+s.root+"/r/x; ok /")
	})
}

func TestContractALoneCheckFailsAloudAndSucceedsInSilence(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c := s.client(t)
		c.want(request{op: jute.OpCheck, body: jute.PathVersion{Path: s.root, Version: 4}}, "bad version")
		c.want(request{op: jute.OpCheck, body: jute.PathVersion{Path: "/none", Version: -1}}, "no node")
		if _, err := c.Send(jute.OpCheck, jute.PathVersion{Path: s.root, Version: -1}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Send(jute.OpPing); err != nil {
			t.Fatal(err)
		}
		if p, err := c.Next(); err != nil || p.Xid != jute.XidPing {
			t.Errorf("%+v, %v", p, err)
		}
	})
}

func TestContractTheEphemeralsOfASessionGoUnderOneZxid(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c, w := s.client(t), s.client(t).mark()
		for _, name := range []string{"/a", "/b"} {
			w.want(create(s.root+name, ""), "ok "+s.root+name)
			c.want(createAs(s.root+name+"/e", "", open, 1), "ok "+s.root+name+"/e")
		}
		c.want(request{op: jute.OpCloseSession}, "ok")
		w.want(exists(s.root+"/a", false), "ok zxid +1+1+5 version 0,2,0 of nobody len 0 kids 0")
		w.want(exists(s.root+"/b", false), "ok zxid +3+3+5 version 0,2,0 of nobody len 0 kids 0")
	})
}
