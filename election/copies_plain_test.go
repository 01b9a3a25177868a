package election

import (
	"context"
	"strings"
	"testing"

	"understudy/supervisor/testbed/must"
)

// What a report gives as a node, a host or an address becomes a part of commands, their environment and URLs.
func TestAReportWhoseWordsAreNoPlainNamesIsNotRead(t *testing.T) {
	odd := []string{
		"127.0.0.1,x'\nrestore_command = 'id >F; false'\n#", "10.0.0.1 port=1", "a'b", `a"b`, `a\b`, "a\x1b[2Jb", "a\nb", "a\n", "\n", " ", "-x", "--eval", "..", ".",
		"a/b", "a;b", "a$b", "a`b`", "a,b", "a=b", "a?b", "a#b", "é", "\u2028", "a\x00b", "[::1]", strings.Repeat("a", 300),
	}
	inWorld(t, func(w *world) {
		w.within("a", func(ctx context.Context, s *Session) error {
			c := stand(ctx, s, Race)
			w.seesCopies(ctx, c) // makes the folder
			at := c.Copies().paths.Copies() + "/"
			for _, word := range odd {
				for node, about := range map[string]CopyReport{"b": {Host: "b", Address: word}, "c": {Host: word, Address: "c"}} {
					try(s.own(ctx, at+node, encode(about)))
				}
				seen := w.seesCopies(ctx, c)
				for _, node := range []string{"b", "c"} {
					if one, ok := seen.Of(node); ok || !strings.Contains(seen.Doubts[node], "cannot be read") {
						w.Errorf("%q of %s is read: %+v; %q", word, node, one, seen.Doubts[node])
					}
				}
			}
			for _, name := range []string{"-b", "b c", "b'c", "b,host=x"} {
				try(s.own(ctx, at+name, encode(CopyReport{Host: "b", Address: "b"})))
				if one, ok := w.seesCopies(ctx, c).Of(name); ok {
					w.Errorf("the report of %q is read: %+v", name, one)
				}
			}
			for _, word := range []string{"b", "db-1.example", "10.0.0.1", "fd00::1", "::1", "b_1"} {
				try(s.own(ctx, at+"b", encode(CopyReport{Node: "other", Host: word, Address: word})))
				if one, ok := w.seesCopies(ctx, c).Of("b"); !ok || one.Node != "b" || one.Address != word || one.Host != word {
					w.Errorf("%s: %+v, %v", word, one, ok)
				}
			}
			return nil
		})
	})
}

// The reasons in a report are shown, and become parts of this node's own.
func TestTheReasonsInAReportAreOneLine(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	one, err := ReadCopyReport("b", encode(CopyReport{Why: "a\nb\x1b[2J" + long, Role: "follower\n", Sees: &SeenPrimary{Why: "c\nd" + long}}))
	must.OK(t, err)
	for _, text := range []string{one.Why, one.Role, one.Sees.Why} {
		if strings.ContainsAny(text, "\n\x1b") || len(text) > 1000 {
			t.Errorf("%.200q", text)
		}
	}
	if !strings.HasPrefix(one.Why, "a?b?[2Jxx") || !strings.HasPrefix(one.Sees.Why, "c?d") {
		t.Errorf("%.20q, %.20q", one.Why, one.Sees.Why)
	}
}

// A lock whose holder has no plain name names nobody to follow.
func TestALockWithoutAPlainNameNamesNobody(t *testing.T) {
	inWorld(t, func(w *world) {
		w.within("a", func(ctx context.Context, s *Session) error {
			c := stand(ctx, s, Race)
			try(s.own(ctx, c.paths.Lock(), encode(Lock{Node: "b\x1b[2J", Host: "b"})))
			if seen := w.seesCopies(ctx, c); seen.Holder != "" || seen.Vacancy != 0 {
				w.Errorf("%q holds the lock", seen.Holder)
			}
			return nil
		})
	})
}

// A record and a member's words are passed on to hooks, agents and fencing methods.
func TestRecordsAndMembersHavePlainNames(t *testing.T) {
	fine := BreadCrumb{Node: "db-1", Host: "db-1.example", Machine: "m", Boot: "b", Agent: "[fe80::1%eth0]:8438"}
	if _, err := ReadBreadCrumb(encode(fine)); err != nil {
		t.Error(err)
	}
	for _, change := range []func(*BreadCrumb){
		func(b *BreadCrumb) { b.Node = "a b" },
		func(b *BreadCrumb) { b.Node = "--yes" },
		func(b *BreadCrumb) { b.Host = "a;reboot" },
		func(b *BreadCrumb) { b.Host = "a\nb" },
		func(b *BreadCrumb) { b.Machine = "$m" },
		func(b *BreadCrumb) { b.Boot = "\x1b" },
		func(b *BreadCrumb) { b.Agent = "a/b:1" },
	} {
		odd := fine
		change(&odd)
		if b, err := ReadBreadCrumb(encode(odd)); err == nil || b.Node != "" || b.Host != "" || b.Agent != "" {
			t.Errorf("%+v is read: %v", odd, err)
		}
	}
	inWorld(t, func(w *world) {
		w.within("a", func(ctx context.Context, s *Session) error {
			c := stand(ctx, s, Race)
			for _, m := range []Member{{Machine: "m b", Agent: "b:1"}, {Machine: "m", Agent: "b/../c:1"}} {
				try(s.own(ctx, c.paths.Members()+"/b", encode(m)))
				peers, _, err := c.Members.peers(ctx)
				if err != nil || len(peers) != 1 || peers[0] != (Peer{Node: "b"}) { // it counts, and cannot be asked
					w.Errorf("%+v: %+v, %v", m, peers, err)
				}
			}
			return nil
		})
	})
	if got := Priorities([]string{"10-b", "20--yes", "30-b c"}); len(got) != 1 || got["b"] != 10 {
		t.Errorf("%v", got)
	}
}
