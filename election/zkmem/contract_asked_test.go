package zkmem_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"understudy/election/jute"
)

var whoAmI = request{op: jute.OpWhoAmI, show: func(_ *client, r *jute.Reader) string {
	var ids jute.Identities
	ids.Decode(r)
	slices.SortFunc(ids, func(a, b jute.Identity) int { return strings.Compare(a.Scheme+a.User, b.Scheme+b.User) }) // the real one's follow a hash table
	return fmt.Sprint(ids)
}}

func TestContractAClientLearnsWhoItIs(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c := s.client(t)
		c.want(whoAmI, "ok [{ip 127.0.0.1}]")
		c.want(auth("digest", "alice:secret"), "ok")
		c.want(auth("digest", "bob:secret"), "ok")
		c.want(whoAmI, "ok [{digest alice} {digest bob} {ip 127.0.0.1}]")
	})
}

func TestContractReconfigIsRefusedAtAZxidOfItsOwn(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c := s.client(t).mark()
		for _, q := range []jute.Reconfig{{Config: -1}, {Joining: "server.9=x:1:2", Config: -1}, {Members: "server.1=x:1:2:participant;3"}} {
			c.want(request{op: jute.OpReconfig, body: q}, "reconfig disabled")
		}
		c.want(create(s.root+"/a", ""), "ok "+s.root+"/a")
		c.want(exists(s.root+"/a", false), "ok zxid +4+4+4 version 0,0,0 of nobody len 0 kids 0")
	})
}

func TestContractSASLHasNoToken(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c := s.client(t).mark()
		token := func(_ *client, r *jute.Reader) string {
			var answer jute.Token
			answer.Decode(r)
			return fmt.Sprint(answer == nil)
		}
		c.want(request{jute.OpSASL, jute.Token("abc"), token}, "ok true")
		if h, err := c.Call(jute.OpSASL, jute.Token("abc"), nil); h.Zxid != 0 || err != nil {
			t.Errorf("answered at %#x, %v", h.Zxid, err)
		}
		c.want(ping, "ok")
		c.want(request{jute.OpSASL, jute.Token(nil), token}, "broken connection")
	})
}

func TestContractAWatchOfAPathTakesThePlaceOfThePreviousOne(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		other := s.client(t)
		add := func(path string, mode int32) request {
			return request{jute.OpAddWatch, jute.PathType{Path: path, Type: mode}, func(_ *client, r *jute.Reader) string { _ = r.Int32(); return "" }}
		}
		recursive := func(path string) request { return add(path, 1) }
		persistent := func(path string) request { return add(path, 0) }
		kids := func(path string) request { return children(path, true) }
		data := func(path string) request { return get(path, true) }
		for name, c := range map[string]struct {
			first, second func(path string) request
			hears, has    string // has: children, data
		}{
			"child, recursive":      {kids, recursive, "created k, changed, created l, changed", "yes yes"},
			"recursive, child":      {recursive, kids, "created k, children, changed, created l, changed", "no yes"},
			"data, recursive":       {data, recursive, "created k, changed, created l, changed", "yes yes"},
			"recursive, data":       {recursive, data, "changed", "yes no"},
			"persistent, recursive": {persistent, recursive, "created k, changed, created l, changed", "yes yes"},
			"recursive, persistent": {recursive, persistent, "children, changed, children, changed", "yes yes"},
			"persistent, child":     {persistent, kids, "children, changed, changed", "no yes"},
			"persistent, data":      {persistent, data, "children, changed, children", "yes no"},
		} {
			w := s.client(t)
			path := s.root + "/" + strings.ReplaceAll(name, ", ", "-")
			other.do(create(path, ""))
			w.do(c.first(path))
			w.do(c.second(path))
			for _, kid := range []string{"/k", "/l"} {
				other.do(create(path+kid, ""))
				other.do(set(path, kid, -1))
			}
			heard := strings.ReplaceAll(strings.TrimSuffix(w.do(sync), "; ok /"), "; ", ", ")
			heard = strings.ReplaceAll(strings.ReplaceAll(heard, path+"/", ""), " "+path, "")
			has := []string{}
			for _, kind := range []int32{1, 2} {
				answer := "yes"
				if w.do(request{op: jute.OpCheckWatches, body: jute.PathType{Path: path, Type: kind}}) != "ok" {
					answer = "no"
				}
				has = append(has, answer)
			}
			if got := strings.Join(has, " "); heard != c.hears || got != c.has {
				t.Errorf("%s: hears %q, not %q; has %s, not %s", name, heard, c.hears, got, c.has)
			}
		}
	})
}

func TestContractTheRareWordsAreAnswered(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c := s.client(t)
		session := fmt.Sprintf("%#x", uint64(c.Session.SessionID))
		watched, short := s.root+"/watched", s.root+"/short"
		c.want(exists(watched, true), "no node")
		c.want(children(s.root, true), "ok ")
		c.want(createAs(short, "", open, 1), "children "+s.root+"; ok "+short)
		for word, wants := range map[string][]string{
			"envi": {"Environment:\nzookeeper.version=" + s.version(), "\nhost.name="},
			"dirs": {"datadir_size: ", "\nlogdir_size: "},
			"wchc": {session + "\n\t" + watched + "\n"},
			"wchp": {watched + "\n\t" + session + "\n"},
			"dump": {"SessionTracker dump:\nSession Sets (", " expire at ", "\n\t" + session + "\n", "ephemeral nodes dump:\nSessions with Ephemerals (",
				"\n" + session + ":\n\t" + short + "\n", "Connections dump:\nConnections Sets (", "\tip: /127.0.0.1:", " sessionId: " + session + "\n"},
		} {
			got := say(t, s.addr, word)
			for _, want := range wants {
				if !strings.Contains(got, want) {
					t.Errorf("%s lacks %q:\n%s", word, want, got)
				}
			}
			if word == "wchp" && strings.Contains(got, "\n"+s.root+"\n") {
				t.Errorf("%s tells of a watch for children:\n%s", word, got)
			}
		}
	})
}
