package zkmem_test

import (
	"testing"

	"understudy/election/jute"
)

func TestContractQuotasAreCounted(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c, other := s.client(t), s.client(t)
		path := s.root + "/a"
		quota := "/zookeeper/quota" + path
		for _, q := range []request{create(path, "123"), create(path+"/k", "45"), create(s.root+"/ab", "no part of it"), create("/zookeeper/quota"+s.root, ""), create(quota, "")} {
			c.do(q)
		}
		c.do(create(quota+"/zookeeper_limits", "count=3,bytes=9"))
		c.do(create(quota+"/zookeeper_stats", "count=0,bytes=0"))
		counts := func(want string) {
			t.Helper()
			c.want(get(quota+"/zookeeper_stats", true), `ok "`+want+`"`)
		}
		counts("count=2,bytes=5")
		c.mark()
		c.want(create(path+"/k/l", "1234567"), "ok "+path+"/k/l")
		counts("count=3,bytes=12")
		c.do(set(path, "1", -1))
		counts("count=3,bytes=10")
		other.do(createAs(path+"/e", "xy", open, 1)) // more than it may have: nobody enforces it
		counts("count=4,bytes=12")
		c.do(multi(jute.SetDataOp(jute.SetData{Path: path, Data: []byte("12345"), Version: -1}), jute.CreateOp(jute.Create{Path: path + "/m", ACL: open}), jute.CheckOp(path, 77)))
		counts("count=4,bytes=12")
		other.do(request{op: jute.OpCloseSession})
		c.do(remove(path+"/k/l", -1))
		counts("count=2,bytes=3")
		c.want(exists(quota+"/zookeeper_stats", false), "ok zxid +0+0+0 version 0,0,0 of nobody len 15 kids 0")
		c.do(remove(quota+"/zookeeper_limits", -1))
		c.do(create(path+"/n", ""))
		counts("count=2,bytes=3")
	})
}
