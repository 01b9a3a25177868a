package election

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
)

// A folder that a stranger may delete in is found, whoever its contents belong to: he deletes lock and breadcrumb.
func TestFolderThatAStrangerMayDeleteInIsFound(t *testing.T) {
	owner := shows("u:owner")
	inWorld(t, func(w *world) {
		// What a stranger has made beforehand, or was made before there were credentials.
		w.as(nil, "old", func(ctx context.Context, s *Session) error {
			return s.ensure(ctx, []string{"/understudy/services/svc", "/understudy/services/other"})
		})
		w.as(owner, "a", func(ctx context.Context, s *Session) error {
			try(w.give(ctx, s, "/understudy"))
			if open, err := s.Exposed(ctx, []string{"svc"}); err != nil || len(open) > 0 {
				w.Errorf("all is ours, and yet %v, %v", open, err)
			}
			if _, err := s.conn.SetACL("/understudy/services/svc", zk.WorldACL(zk.PermAll), -1); err != nil {
				return err
			}
			cl := activated(ctx, s)
			open, err := s.Exposed(ctx, []string{"svc"})
			if err != nil || !slices.Contains(open, "/understudy/services/svc") || len(open) != 1 {
				w.Errorf("%v, %v", open, err)
			}
			if open, err := s.Exposed(ctx, []string{"other"}); err != nil || len(open) > 0 {
				w.Errorf("of another service: %v, %v", open, err)
			}
			if note := ExposedNote(append(open, "x")); !strings.Contains(note, "/understudy/services/svc (and 1 more)") || !strings.Contains(note, "check --repair-acl") {
				w.Error(note)
			}
			return cl.Release(ctx)
		})
	})
}

func TestAnyRightToChangeIsAnExposure(t *testing.T) {
	a := shows("u:owner", "u:next")
	for _, c := range []struct {
		acl  []zk.ACL
		want bool
	}{
		{a.ACL(), false},
		{shows("u:owner").ACL(), false},
		{append(a.ACL(), zk.WorldACL(zk.PermRead)...), false},
		{append(a.ACL(), zk.WorldACL(zk.PermDelete)...), true},
		{append(a.ACL(), zk.WorldACL(zk.PermCreate)...), true},
		{append(a.ACL(), shows("u:stranger").ACL()...), true},
		{append(a.ACL(), zk.ACL{Perms: zk.PermAll, Scheme: "ip", ID: "0.0.0.0/0"}), true},
	} {
		if got := a.exposed(c.acl); got != c.want {
			t.Errorf("%+v: %v", c.acl, got)
		}
	}
}
