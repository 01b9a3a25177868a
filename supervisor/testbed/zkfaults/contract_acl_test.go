package zkfaults_test

import (
	"fmt"
	"strings"
	"testing"

	"understudy/election/jute"
)

const (
	aliceID = "alice:aYXlLOpEooaV1cRAvUL1fp9Qt7E=" // alice:secret
	bobAuth = "bob:pw"
)

func acl(perms int32, scheme, id string) []jute.ACL {
	return []jute.ACL{{Perms: perms, Scheme: scheme, ID: id}}
}

func TestContractEveryPermissionIsAskedFor(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		me, other := s.client(t), s.client(t)
		me.want(auth("digest", "alice:secret"), "ok")
		mine := append(acl(31, "digest", aliceID), jute.WorldACL(0)...)
		p := s.root + "/p"
		me.want(createAs(p, "x", mine, 0), "ok "+p)
		me.want(createAs(p+"/kid", "", mine, 0), "ok "+p+"/kid")

		for _, q := range []request{
			create(p+"/new", ""), set(p, "", -1), get(p, false), get(p, true), children(p, false), children2(p, false),
			remove(p+"/kid", -1), getACL(p), setACL(p, open, -1),
		} {
			other.want(q, "no auth")
		}
		other.want(multi(jute.CheckOp(p, -1)), "ok [error/-102]")
		other.want(multi(jute.CreateOp(jute.Create{Path: p + "/x", ACL: open})), "ok [error/-102]")
		other.want(multi(jute.SetDataOp(jute.SetData{Path: p, Version: -1})), "ok [error/-102]")
		other.want(multi(jute.DeleteOp(p+"/kid", -1)), "ok [error/-102]")
		other.want(remove(p, -1), "not empty") // the parent's ACL counts, and that is open
		if got := other.do(exists(p, false)); got[:2] != "ok" {
			t.Errorf("exists needs no permission, but: %s", got)
		}
		other.want(auth("digest", "alice:secret"), "ok")
		other.want(get(p, false), `ok "x"`)
		other.want(remove(p+"/kid", -1), "ok")
	})
}

func TestContractPermissionsAreToldApart(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c := s.client(t)
		for perm, want := range map[int32]string{
			jute.PermRead:   "read",
			jute.PermWrite:  "write",
			jute.PermCreate: "create",
			jute.PermDelete: "delete",
			jute.PermAdmin:  "admin",
			jute.PermAll:    "read write create delete admin",
			0:               "",
		} {
			p := fmt.Sprintf("%s/p%d", s.root, perm)
			c.want(createAs(p, "", jute.WorldACL(perm), 0), "ok "+p)
			var may []string
			for _, try := range []struct {
				name string
				q    request
			}{
				{"read", get(p, false)}, {"write", set(p, "", -1)}, {"create", create(p+"/kid", "")},
				{"delete", remove(p+"/none", -1)}, {"admin", setACL(p, open, 0)},
			} {
				if got := c.do(try.q); got != "no auth" {
					may = append(may, try.name)
				}
			}
			if got := strings.Join(may, " "); got != want {
				t.Errorf("permissions %d: %s", perm, got)
			}
		}
	})
}

func TestContractACLsAreValidated(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c := s.client(t)
		p := s.root + "/p"
		for _, bad := range [][]jute.ACL{
			nil, acl(31, "world", "me"), acl(31, "auth", ""), acl(31, "digest", "nocolon"), acl(31, "digest", "a:"),
			acl(31, "digest", "a:b:c"), acl(31, "nonsense", "x"), acl(31, "super", ""), acl(31, "", ""),
			append(jute.WorldACL(1), jute.ACL{Perms: 1, Scheme: "x", ID: "y"}),
		} {
			if got := c.do(createAs(p, "", bad, 0)); got != "invalid acl" {
				t.Errorf("create with %+v: %s", bad, got)
			}
			if got := c.do(setACL(s.root, bad, -1)); got != "invalid acl" {
				t.Errorf("setACL %+v: %s", bad, got)
			}
		}
		twice := append(jute.WorldACL(1), jute.WorldACL(1)...)
		c.want(createAs(p, "", append(twice, acl(2, "digest", "a:b")...), 0), "ok "+p)
		c.want(getACL(p), "ok 1:world:anyone,2:digest:a:x aversion 0")
		c.want(createAs(s.root+"/q", "", acl(31, "digest", ":x"), 0), "ok "+s.root+"/q")
	})
}

func TestContractAuthIsWrittenOutAsAllWhoAsk(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c := s.client(t)
		p := s.root + "/p"
		c.want(auth("digest", "alice:secret"), "ok")
		c.want(auth("digest", bobAuth), "ok")
		c.want(auth("digest", bobAuth), "ok")
		c.want(createAs(p, "", acl(31, "auth", "ignored"), 0), "ok "+p)
		got := c.do(getACL(p))
		a, b := "31:digest:"+aliceID, "31:digest:bob:ikIaKsbtGweaHnb/jKn7OHqbunM="
		if got != "ok "+a+","+b+" aversion 0" && got != "ok "+b+","+a+" aversion 0" {
			t.Error(got)
		}
	})
}

func TestContractDigestsAreMaskedForWhoMayNotAdminister(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c, other := s.client(t), s.client(t)
		p := s.root + "/p"
		c.want(auth("digest", "alice:secret"), "ok")
		c.want(createAs(p, "", append(acl(31, "digest", aliceID), jute.WorldACL(1)...), 0), "ok "+p)
		c.want(getACL(p), "ok 31:digest:"+aliceID+",1:world:anyone aversion 0")
		other.want(getACL(p), "ok 31:digest:alice:x,1:world:anyone aversion 0")
	})
}

func TestContractAnUnknownSchemeEndsTheConnection(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c := s.client(t)
		c.want(auth("nonsense", "x"), "auth failed")
		if got := c.dead(); got != "closed" {
			t.Error(got)
		}
	})
}

func TestContractIdentitiesBelongToTheConnection(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c := s.client(t)
		p := s.root + "/p"
		c.want(auth("digest", "alice:secret"), "ok")
		c.want(createAs(p, "", acl(31, "auth", ""), 0), "ok "+p)
		again := s.hello(t, jute.ConnectRequest{Timeout: 2000, SessionID: c.Session.SessionID, Password: c.Session.Password})
		again.want(get(p, false), "no auth")
	})
}

func TestContractWatchEventsAreForThoseWhoMayRead(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c, other := s.client(t), s.client(t)
		c.want(auth("digest", "alice:secret"), "ok")
		p := s.root + "/p"
		other.want(exists(p, true), "no node")
		c.want(createAs(p, "", acl(31, "auth", ""), 0), "ok "+p)
		other.want(sync, "ok /")
		other.do(exists(p, true))
		c.do(set(p, "x", -1))
		other.want(sync, "ok /")
	})
}
