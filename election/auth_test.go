package election

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/supervisor/testbed/must"
)

func shows(secrets ...string) *Auth {
	a := &Auth{Scheme: "digest"}
	for _, s := range secrets {
		a.Secrets = append(a.Secrets, []byte(s))
	}
	return a
}

// as runs f in a session of a node that shows credentials.
func (w *world) as(a *Auth, node string, f func(ctx context.Context, s *Session) error) {
	w.Helper()
	cfg := w.config(node)
	cfg.Auth = a
	e := New(cfg)
	if err := e.Open(w.Context(), caught(f)); err != nil {
		w.Errorf("%s: %v", node, err)
	}
	e.Wait()
}

// Credentials are changed under a session that holds a lock: it stays the same session, holds the lock, and extends its lease.
func TestCredentialsAreChangedUnderASession(t *testing.T) {
	was, both, is := shows("u:was"), shows("u:was", "u:is"), shows("u:is")
	inWorld(t, func(w *world) {
		w.as(was, "a", func(ctx context.Context, s *Session) error {
			cl := activated(ctx, s)
			id, paths := s.ID(), Paths{"/understudy", "svc"}
			if err := s.Renew(ctx, is); !errors.Is(err, ErrNotOurs) {
				w.Errorf("at once: %v", err)
			}
			acl, _, err := s.conn.GetACL("/understudy")
			if err != nil || len(acl) != 1 || !was.owns(acl) {
				w.Errorf("before: %+v %v", acl, err)
			}
			try(s.Renew(ctx, both))
			if err := s.Renew(ctx, is); !errors.Is(err, ErrNotOurs) {
				w.Errorf("what belongs to the previous alone is not ours: %v", err)
			}
			try(w.give(ctx, s, "/understudy"))
			try(s.Renew(ctx, is))
			end := s.Lease.End()
			time.Sleep(testTimeout)
			if s.Lease.End() < end+testTimeout/2 || s.ID() != id || s.Over() != nil {
				w.Errorf("the lease ends at %v, formerly %v; session %x, formerly %x; %v", s.Lease.End(), end, s.ID(), id, s.Over())
			}
			try(s.create(ctx, paths.Dir()+"/x", nil, 0))
			acl, err = insist(ctx, s.client, func() ([]zk.ACL, error) { acl, _, err := s.conn.GetACL(paths.Dir() + "/x"); return acl, err })
			if err != nil || was.owns(acl) || !is.owns(acl) {
				w.Errorf("what is created belongs to %+v, %v", acl, err)
			}
			return cl.Release(ctx)
		})
		w.as(is, "b", func(ctx context.Context, s *Session) error { _, err := activate(ctx, s); return err })
	})
}

// What is created with the previous credentials while all is being looked at is not overlooked.
func TestCredentialsAreNotChangedTooEarly(t *testing.T) {
	was, both, is := shows("u:was"), shows("u:was", "u:is"), shows("u:is")
	inWorld(t, func(w *world) {
		cfg := w.config("a")
		cfg.Auth = was
		var dialled func()
		cfg.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
			if dialled != nil {
				once := dialled
				dialled = nil
				once()
			}
			return w.dial(ctx, addr)
		}
		e := New(cfg)
		err := e.Open(w.Context(), func(ctx context.Context, s *Session) error {
			if err := errors.Join(s.Renew(ctx, both), w.give(ctx, s, "/understudy"), s.Renew(ctx, was)); err != nil {
				return err
			}
			if err := s.tree(ctx).belongs("/understudy", was); err != nil { // and so it is connected again
				return err
			}
			dialled = func() {
				w.as(was, "b", func(ctx context.Context, s *Session) error {
					return s.create(ctx, "/understudy/services/late", nil, 0)
				})
			}
			if err := s.Renew(ctx, is); !errors.Is(err, ErrNotOurs) || dialled != nil {
				w.Errorf("renewed: %v", err)
			}
			if err := errors.Join(s.tree(ctx).belongs("/understudy", was), s.create(ctx, "/understudy/services/x", nil, 0)); err != nil {
				return err
			}
			acl, err := insist(ctx, s.client, func() ([]zk.ACL, error) { acl, _, err := s.conn.GetACL("/understudy/services/x"); return acl, err })
			if err != nil || !was.owns(acl) || is.owns(acl) {
				w.Errorf("what is created belongs to %+v, %v", acl, err)
			}
			return nil
		})
		must.Report(w, err)
		e.Wait()
	})
}

// give is what `check --repair-acl` does.
func (w *world) give(ctx context.Context, s *Session, path string) error {
	if _, err := insist(ctx, s.client, func() (*zk.Stat, error) { return s.conn.SetACL(path, s.acl, -1) }); err != nil {
		return err
	}
	names, err := insist(ctx, s.client, func() ([]string, error) { names, _, err := s.conn.Children(path); return names, err })
	for _, name := range names {
		err = errors.Join(err, w.give(ctx, s, path+"/"+name))
	}
	return err
}

// Whoever closes the session of a dead supervisor shows what it was told and what the file holds by then.
func TestClosingShowsWhatTheFileHolds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	for text, want := range map[string]int{"": 1, "u:is\n": 2, "u:is\nu:next\n": 3} {
		if text != "" {
			must.OK(t, os.WriteFile(file, []byte(text), 0o600))
		}
		a := shows("u:was")
		a.File = file
		if all := a.widened(); len(all.Secrets) != want || string(all.Secrets[0]) != "u:was" || len(a.Secrets) != 1 {
			t.Errorf("%q: %s", text, all.Secrets)
		}
		_ = os.Remove(file)
	}
	if (*Auth)(nil).widened() != nil {
		t.Error("credentials of nothing")
	}
}

func TestCredentialsAreTheSameInAnyOrder(t *testing.T) {
	a := shows("u:a", "u:b")
	if !a.Same(shows("u:b", "u:a")) || a.Same(shows("u:a")) || a.Same(shows("u:a", "u:c")) {
		t.Error("they are compared otherwise")
	}
}

// A line without a colon would be a name as a whole, which everybody may read in an ACL.
func TestASecretWithoutAColonIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "zk.secret")
	for text, ok := range map[string]bool{"user:password\n": true, "user:one\nuser:two\n": true, "password\n": false, "user:password\npassword\n": false} {
		must.OK(t, os.WriteFile(file, []byte(text), 0o600))
		if _, err := ReadAuth("digest", file); (err == nil) != ok || err != nil && (strings.Contains(err.Error(), "password\n") || !strings.Contains(err.Error(), "is not user:password")) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
