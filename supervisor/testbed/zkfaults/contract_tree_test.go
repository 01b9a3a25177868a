package zkfaults_test

import (
	"strings"
	"testing"

	"understudy/election/jute"
)

func TestContractStatsFollowEveryChange(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c := s.client(t).mark()
		a := s.root + "/a"
		c.want(create2(a, "xyz", 0), "ok "+a+" zxid +1+1+1 version 0,0,0 of nobody len 3 kids 0")
		c.want(set(a, "", 0), "ok zxid +1+2+1 version 1,0,0 of nobody len 0 kids 0")
		c.want(set(a, "four", -1), "ok zxid +1+3+1 version 2,0,0 of nobody len 4 kids 0")
		c.want(set(a, "four", 1), "bad version") // takes a zxid all the same
		c.want(create(a+"/b", ""), "ok "+a+"/b")
		c.want(exists(a, false), "ok zxid +1+3+5 version 2,1,0 of nobody len 4 kids 1")
		c.want(remove(a+"/b", 0), "ok")
		c.want(exists(a, false), "ok zxid +1+3+6 version 2,2,0 of nobody len 4 kids 0")
		c.want(create2(a+"/e", "", jute.FlagEphemeral), "ok "+a+"/e zxid +7+7+7 version 0,0,0 of me len 0 kids 0")
		c.want(setACL(a, open, -1), "ok 1")
		c.want(exists(a, false), "ok zxid +1+3+7 version 2,3,1 of nobody len 4 kids 1")
		c.want(children2(a, false), "ok e zxid +1+3+7 version 2,3,1 of nobody len 4 kids 1")
		c.want(children(s.root, false), "ok a")
	})
}

func TestContractNullDataStaysNull(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c := s.client(t)
		c.want(request{jute.OpCreate, jute.Create{Path: s.root + "/n", ACL: open}, showPath}, "ok "+s.root+"/n")
		c.want(get(s.root+"/n", false), "ok null")
		c.want(create(s.root+"/e", ""), "ok "+s.root+"/e")
		c.want(get(s.root+"/e", false), `ok ""`)
	})
}

func TestContractErrorsOfSingleRequests(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c := s.client(t)
		r := s.root
		c.want(create(r, ""), "node exists")
		c.want(create(r+"/no/child", ""), "no node")
		c.want(create(r+"/kid", ""), "ok "+r+"/kid")
		c.want(remove(r, -1), "not empty")
		c.want(remove(r, 7), "bad version")
		c.want(remove(r+"/none", -1), "no node")
		c.want(remove(r+"/none/none", -1), "no node")
		c.want(get(r+"/none", false), "no node")
		c.want(set(r+"/none", "", -1), "no node")
		c.want(exists(r+"/none", false), "no node")
		c.want(children(r+"/none", false), "no node")
		c.want(children2(r+"/none", false), "no node")
		c.want(getACL(r+"/none"), "no node")
		c.want(setACL(r+"/none", open, -1), "no node")
		c.want(setACL(r, open, 9), "bad version")
		c.want(createAs(r+"/eph", "", open, jute.FlagEphemeral), "ok "+r+"/eph")
		c.want(create(r+"/eph/kid", ""), "no children for ephemerals")
		c.want(createAs(r+"/x", "", open, 7), "bad arguments")
		c.want(createAs(r+"/x", "", open, -1), "bad arguments")
		c.want(createAs(r+"/x", "", nil, 0), "invalid acl")
	})
}

func TestContractBadPathsAreRefused(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c := s.client(t)
		r := s.root
		for _, path := range []string{
			"", "x", "x/y", r + "/", r + "//y", r + "/.", r + "/..", r + "/./y", r + "/../y", r + "/a\x00b", r + "/a\x01b",
			r + "/a\x7fb", r + "/a\u0085b", r + "/a\ue000b", r + "/a\uffffb", r + "/a\U0001f600b", r + "/a\xffb", "/", "//",
		} {
			want := "bad arguments"
			switch path {
			case "/":
				want = "node exists"
			case r + "//y", r + "/./y", r + "/../y", "x/y":
				want = "no node" // the parent is looked up first
			case "//":
				want = "bad arguments"
			}
			if got := c.do(create(path, "")); got != want {
				t.Errorf("create %q: got %s, want %s", path, got, want)
			}
		}
		for _, path := range []string{"", "x", r + "/", r + "//y", r + "/a\x01b", r + "/..", "/x\x00y"} {
			if got := c.do(set(path, "", -1)); got != "bad arguments" {
				t.Errorf("set %q: %s", path, got)
			}
			if got := c.do(get(path, false)); got != "no node" && path != "" {
				t.Errorf("get %q: %s", path, got)
			}
		}
		c.want(exists(r+"/a\x00b", false), "bad arguments")
		for _, path := range []string{"x", "/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config", "/a\x00b"} {
			if got := c.do(remove(path, -1)); got != "bad arguments" {
				t.Errorf("delete %q: %s", path, got)
			}
		}
		c.want(remove(r+"/", -1), "no node")
		c.want(create(r+"/...", ""), "ok "+r+"/...")
		c.want(create(r+"/.x", ""), "ok "+r+"/.x")
		c.want(create(r+"/ä", ""), "ok "+r+"/ä")
		c.want(create(r+"/\uffef", ""), "ok "+r+"/\uffef")
		c.want(create(r+"/\uf900", ""), "ok "+r+"/\uf900")
	})
}

func TestContractSequenceNumbersCountTheChildrenEverCreated(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c := s.client(t)
		r := s.root
		c.want(createAs(r+"/s-", "", open, jute.FlagSequence), "ok "+r+"/s-0000000000")
		c.want(create(r+"/plain", ""), "ok "+r+"/plain") // counts too
		c.want(createAs(r+"/s-", "", open, jute.FlagEphemeralSequential), "ok "+r+"/s-0000000002")
		c.want(remove(r+"/plain", -1), "ok") // does not
		c.want(createAs(r+"/", "", open, jute.FlagSequence), "ok "+r+"/0000000003")
		c.want(create(r+"/s-0000000004", ""), "ok "+r+"/s-0000000004")
		c.do(set(r, "", -1)) // nor does this
		c.want(createAs(r+"/s-", "", open, jute.FlagSequence), "ok "+r+"/s-0000000005")
		c.want(create(r+"/s-0000000007", ""), "ok "+r+"/s-0000000007")
		c.want(createAs(r+"/s-", "", open, jute.FlagSequence), "node exists")
		c.want(createAs(r+"/t-", "", open, jute.FlagSequence), "ok "+r+"/t-0000000007")
		c.want(multi(
			jute.CreateOp(jute.Create{Path: r + "/m-", ACL: open, Flags: 2}),
			jute.CreateOp(jute.Create{Path: r + "/m-", ACL: open, Flags: 2}),
			jute.CheckOp(r+"/none", -1)), "ok [error/0 | error/0 | error/-101]")
		c.want(createAs(r+"/s-", "", open, jute.FlagSequence), "ok "+r+"/s-0000000008")
	})
}

func TestContractTheTreeStartsWithTheServersOwnNodes(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c := s.client(t)
		c.want(children("/zookeeper", false), "ok config quota")
		c.want(getACL("/zookeeper"), "ok 31:world:anyone aversion 0")
		c.want(getACL("/zookeeper/config"), "ok 1:world:anyone aversion -1")
		c.want(getACL("/"), "ok 31:world:anyone aversion 0")
		c.want(set("/zookeeper/config", "", -1), "no auth")
		c.base = 0
		c.want(exists("/zookeeper/config", false), "ok zxid +0+0+0 version 0,0,-1 of nobody len 0 kids 0")
		c.want(exists("/zookeeper", false), "ok zxid +0+0+0 version 0,-2,0 of nobody len 0 kids 2")
		for _, path := range []string{"/", "/zookeeper/quota"} { // which other tests have put nodes below
			if got := c.do(exists(path, false)); !strings.HasPrefix(got, "ok zxid +0+0+") {
				t.Error(got)
			}
		}
		if got := c.do(children("/", false)); !strings.Contains(got+" ", "zookeeper ") {
			t.Error(got)
		}
	})
}
