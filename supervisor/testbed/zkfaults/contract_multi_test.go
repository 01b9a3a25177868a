package zkfaults_test

import (
	"testing"

	"understudy/election/jute"
)

func TestContractATransactionSeesItsOwnSteps(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c := s.client(t).mark()
		a := s.root + "/a"
		c2 := jute.MultiOp{Op: jute.OpCreate2, Create: jute.Create{Path: a + "/b", ACL: open, Flags: 1}}
		c.want(multi(
			jute.CreateOp(jute.Create{Path: a, Data: []byte("1"), ACL: open}),
			c2,
			jute.CheckOp(a, 0),
			jute.SetDataOp(jute.SetData{Path: a, Data: []byte("22"), Version: 0}),
			jute.CheckOp(a, 1),
			jute.DeleteOp(a+"/b", 0),
			jute.CreateOp(jute.Create{Path: a + "/s", ACL: open, Flags: 2}),
		), "ok [create/0 "+a+" | create/0 "+a+"/b | check/0 | "+
			"setData/0 zxid +1+1+1 version 1,1,0 of nobody len 2 kids 1 | check/0 | delete/0 | create/0 "+a+"/s0000000001]")
		c.want(exists(a, false), "ok zxid +1+1+1 version 1,3,0 of nobody len 2 kids 1")
	})
}

func TestContractAFailedTransactionLeavesNothing(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c := s.client(t)
		r := s.root
		c.want(create(r+"/keep", "old"), "ok "+r+"/keep")
		c.want(createAs(r+"/eph", "e", open, 1), "ok "+r+"/eph")
		c.mark()
		before := c.do(exists(r, false)) + c.do(exists(r+"/keep", false)) + c.do(exists(r+"/eph", false))
		c.want(multi(
			jute.CreateOp(jute.Create{Path: r + "/new", ACL: open}),
			jute.CreateOp(jute.Create{Path: r + "/new/kid", ACL: open}),
			jute.SetDataOp(jute.SetData{Path: r + "/keep", Data: []byte("new"), Version: -1}),
			jute.DeleteOp(r+"/keep", -1),
			jute.DeleteOp(r+"/eph", -1),
			jute.CreateOp(jute.Create{Path: r + "/eph", ACL: open}),
			jute.CheckOp(r, 99),
			jute.CreateOp(jute.Create{Path: r + "/after", ACL: open}),
			jute.DeleteOp(r+"/nonsense", -1),
		), "ok [error/0 | error/0 | error/0 | error/0 | error/0 | error/0 | error/-103 | error/-2 | error/-2]")
		if after := c.do(exists(r, false)) + c.do(exists(r+"/keep", false)) + c.do(exists(r+"/eph", false)); after != before {
			t.Errorf("before %s\nafter  %s", before, after)
		}
		c.want(get(r+"/keep", false), `ok "old"`)
		c.want(children(r, false), "ok eph keep")
		c.want(create2(r+"/next", "", 0), "ok "+r+"/next zxid +2+2+2 version 0,0,0 of nobody len 0 kids 0")
	})
}

func TestContractTheFirstStepThatFailsIsTheOneNamed(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c := s.client(t)
		r := s.root
		for _, test := range []struct {
			ops  []jute.MultiOp
			want string
		}{
			{nil, "ok []"},
			{[]jute.MultiOp{jute.DeleteOp(r+"/none", -1)}, "ok [error/-101]"},
			{[]jute.MultiOp{jute.CreateOp(jute.Create{Path: r, ACL: open}), jute.CheckOp(r, 0)}, "ok [error/-110 | error/-2]"},
			{[]jute.MultiOp{jute.CheckOp(r, 0), jute.CreateOp(jute.Create{Path: "x", ACL: open})}, "ok [error/0 | error/-8]"},
			{[]jute.MultiOp{jute.CheckOp("x", 0)}, "ok [error/-8]"},
			{[]jute.MultiOp{jute.CheckOp(r, 1)}, "ok [error/-103]"},
			{[]jute.MultiOp{jute.CheckOp(r, 0), jute.CheckOp(r, -1)}, "ok [check/0 | check/0]"},
			{[]jute.MultiOp{jute.CreateOp(jute.Create{Path: r + "/x", Flags: 9, ACL: open})}, "ok [error/-8]"},
			{[]jute.MultiOp{jute.CreateOp(jute.Create{Path: r + "/x"})}, "ok [error/-114]"},
			{[]jute.MultiOp{jute.CreateOp(jute.Create{Path: r + "/e", ACL: open, Flags: 1}),
				jute.CreateOp(jute.Create{Path: r + "/e/k", ACL: open})}, "ok [error/0 | error/-108]"},
			{[]jute.MultiOp{jute.CreateOp(jute.Create{Path: r + "/d", ACL: open}),
				jute.CreateOp(jute.Create{Path: r + "/d/k", ACL: open}), jute.DeleteOp(r+"/d", -1)}, "ok [error/0 | error/0 | error/-111]"},
			{[]jute.MultiOp{jute.CreateOp(jute.Create{Path: r + "/d", ACL: open}), jute.DeleteOp(r+"/d", 0),
				jute.CreateOp(jute.Create{Path: r + "/d", ACL: open}), jute.DeleteOp(r+"/d", 0)},
				"ok [create/0 " + r + "/d | delete/0 | create/0 " + r + "/d | delete/0]"},
		} {
			c.want(multi(test.ops...), test.want)
		}
	})
}

func TestContractATransactionOfNonsenseIsRefusedAsAWhole(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c := s.client(t)
		c.want(multi(jute.MultiOp{Op: 99, Target: jute.PathVersion{Path: "/x"}}), "marshalling error")
		c.want(multi(jute.MultiOp{Op: jute.OpMulti}), "marshalling error")
		c.want(request{op: jute.OpMulti, body: short{}}, "marshalling error")
		c.want(ping, "ok")
	})
}
