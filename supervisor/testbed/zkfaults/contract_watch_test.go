package zkfaults_test

import (
	"testing"

	"understudy/election/jute"
)

func TestContractWatchesFireOnceAndBeforeTheAnswerToTheirCause(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c := s.client(t)
		a := s.root + "/a"
		c.want(exists(a, true), "no node")
		c.want(children(s.root, true), "ok ")
		c.want(create(a, "1"), "created "+a+"; children "+s.root+"; ok "+a)
		c.want(ping, "ok")
		c.want(get(a, true), `ok "1"`)
		c.mark()
		c.want(set(a, "2", -1), "changed "+a+"; ok zxid +0+1+0 version 1,0,0 of nobody len 1 kids 0")
		c.want(set(a, "3", -1), "ok zxid +0+2+0 version 2,0,0 of nobody len 1 kids 0")
		c.want(exists(a, true), "ok zxid +0+2+0 version 2,0,0 of nobody len 1 kids 0")
		c.want(get(a, true), `ok "3"`) // the same watch again
		c.want(children(a, true), "ok ")
		c.want(children(s.root, true), "ok a")
		c.want(remove(a, -1), "deleted "+a+"; children "+s.root+"; ok") // told once, though two watches saw it
		c.want(sync, "ok /")
		c.want(create(a, ""), "ok "+a)
	})
}

func TestContractAChildWatchHearsOfItsOwnNodesEnd(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c := s.client(t)
		a := s.root + "/a"
		c.want(create(a, ""), "ok "+a)
		c.want(children2(a, true), c.do(children2(a, false)))
		c.want(setACL(a, open, -1), "ok 1") // no watch cares
		c.want(remove(a, -1), "deleted "+a+"; ok")
		c.want(get(a, true), "no node") // leaves no watch
		c.want(children(a, true), "no node")
		c.want(create(a, ""), "ok "+a)
	})
}

func TestContractOthersHearInTheOrderOfTheTransaction(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c, other := s.client(t), s.client(t)
		a, b := s.root+"/a", s.root+"/b"
		c.want(create(a, ""), "ok "+a)
		other.want(get(a, true), `ok ""`)
		other.want(exists(b, true), "no node")
		other.want(children(s.root, true), "ok a")
		c.mark()
		c.want(multi(
			jute.CreateOp(jute.Create{Path: b, ACL: open}),
			jute.SetDataOp(jute.SetData{Path: a, Data: []byte("x"), Version: -1}),
			jute.DeleteOp(a, 1),
		), "ok [create/0 "+b+" | setData/0 zxid +0+1+0 version 1,0,0 of nobody len 1 kids 0 | delete/0]")
		other.want(sync, "created "+b+"; children "+s.root+"; changed "+a+"; ok /")
	})
}

func TestContractAFailedTransactionFiresNoWatch(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c := s.client(t)
		a := s.root + "/a"
		c.want(exists(a, true), "no node")
		c.want(children(s.root, true), "ok ")
		c.want(multi(jute.CreateOp(jute.Create{Path: a, ACL: open}), jute.DeleteOp(s.root+"/none", -1)),
			"ok [error/0 | error/-101]")
		c.want(ping, "ok")
		c.want(create(a, ""), "created "+a+"; children "+s.root+"; ok "+a)
	})
}

func TestContractSetWatchesFiresWhatWasMissed(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c := s.client(t)
		r := s.root
		for _, name := range []string{"same", "set", "gone", "kids", "calm", "dead", "made"} {
			if name != "made" {
				c.want(create(r+"/"+name, ""), "ok "+r+"/"+name)
			}
		}
		c.mark()
		seen := c.base
		c.do(set(r+"/set", "x", -1))
		c.want(remove(r+"/gone", -1), "ok")
		c.want(create(r+"/kids/k", ""), "ok "+r+"/kids/k")
		c.want(remove(r+"/dead", -1), "ok")
		c.want(create(r+"/made", ""), "ok "+r+"/made")

		late := s.client(t)
		late.want(setWatches(seen,
			[]string{r + "/same", r + "/set", r + "/gone"},
			[]string{r + "/made", r + "/never"},
			[]string{r + "/kids", r + "/calm", r + "/dead"}),
			"changed "+r+"/set; deleted "+r+"/gone; created "+r+"/made; children "+r+"/kids; deleted "+r+"/dead; ok")
		c.do(set(r+"/same", "x", -1))
		c.do(set(r+"/set", "y", -1))
		c.want(create(r+"/calm/k", ""), "ok "+r+"/calm/k")
		c.want(create(r+"/never", ""), "ok "+r+"/never")
		late.want(sync, "changed "+r+"/same; children "+r+"/calm; created "+r+"/never; ok /")
	})
}

func TestContractSetWatchesComparesDataWithMzxidAndChildrenWithPzxid(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c := s.client(t)
		r := s.root
		c.want(create(r+"/n", ""), "ok "+r+"/n")
		c.mark()
		c.want(create(r+"/n/k", ""), "ok "+r+"/n/k")
		late := s.client(t)
		late.want(setWatches(c.base, []string{r + "/n"}, nil, []string{r}), "ok")
		late.want(setWatches(c.base-1, []string{r + "/n"}, nil, []string{r}), "changed "+r+"/n; children "+r+"; ok")
	})
}

func TestContractWatchesAreTheConnectionsAndEndWithIt(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c, other := s.client(t), s.client(t)
		a := s.root + "/a"
		c.want(exists(a, true), "no node")
		again := s.hello(t, jute.ConnectRequest{Timeout: 2000, SessionID: c.Session.SessionID, Password: c.Session.Password})
		other.want(create(a, ""), "ok "+a)
		again.want(sync, "ok /") // nothing: the watch went with the old connection
	})
}
