package zkfaults_test

import (
	"errors"
	"testing"

	"understudy/election/jute"
)

func TestContractZxidsOfAnswersThatAreNoneOfTheTreesBusiness(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c := s.client(t).mark()
		q := auth("digest", "a:b")
		if h, err := c.Call(q.op, q.body, nil); h.Zxid != 0 || err != nil {
			t.Errorf("%v is answered at %#x, %v", q.op, h.Zxid, err)
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
