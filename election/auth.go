package election

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"understudy/election/jute"
	"understudy/supervisor/keyfile"
)

// ErrNoAuth says that our credentials do not allow a request.
var ErrNoAuth = zk.ErrNoAuth

// Explained is err with what to do, where credentials are the reason.
func Explained(err error) error {
	if !errors.Is(err, ErrNoAuth) {
		return err
	}
	return errors.New(strings.ReplaceAll(err.Error(), ErrNoAuth.Error(),
		"not authenticated: other credentials made this znode, set zookeeper.auth to those of the other nodes"))
}

// ErrNotOurs says that a znode does not belong to the credentials that we wanted to use from now on.
var ErrNotOurs = errors.New("does not belong to the changed credentials")

// Auth is a list of credentials of one scheme, for example digest and user:password. We send all of them: a new znode
// belongs to each of them, and each gives access to its own znodes.
type Auth struct {
	Scheme  string   `json:"scheme"`
	Secrets [][]byte `json:"secrets"`
	File    string   `json:"file,omitempty"` // where they are from, each on a line
}

// ReadAuth reads credentials, each on a line of a file.
func ReadAuth(scheme, file string) (*Auth, error) {
	lines, err := keyfile.Lines(file)
	if err != nil {
		return nil, err
	}
	a := &Auth{Scheme: scheme, File: file}
	for i, line := range lines {
		if scheme == "digest" && !strings.Contains(line, ":") { // else the whole line would be a name, which everybody can read
			return nil, fmt.Errorf("%s: line %d is not user:password", file, i+1)
		}
		a.Secrets = append(a.Secrets, []byte(line))
	}
	return a, nil
}

// Anew reads the credentials again.
func (a *Auth) Anew() (*Auth, error) { return ReadAuth(a.Scheme, a.File) }

// Same reports whether others are the same, in any order.
func (a *Auth) Same(others *Auth) bool {
	one, other := slices.Clone(a.Secrets), slices.Clone(others.Secrets)
	slices.SortFunc(one, bytes.Compare)
	slices.SortFunc(other, bytes.Compare)
	return a.Scheme == others.Scheme && slices.EqualFunc(one, other, bytes.Equal)
}

// frames is the credentials as requests.
func (a *Auth) frames() (all []byte) {
	for _, secret := range a.Secrets {
		all = append(all, jute.Frame(jute.RequestHeader{Xid: xidAuth, Op: jute.OpAuth}, jute.AuthPacket{Scheme: a.Scheme, Auth: secret})...)
	}
	return all
}

// widened adds the credentials that the file holds by now, if it can be read within a moment.
func (a *Auth) widened() *Auth {
	if a == nil || a.File == "" {
		return a
	}
	now, err := keyfile.CachedFrom(a, a.Anew)()
	if err != nil || now == a {
		return a
	}
	all := *a
	all.Secrets = slices.Concat(a.Secrets, now.Secrets)
	return &all
}

// ACL is the ACL of a znode that belongs to the credentials: ZooKeeper turns "its creator alone" into it. It is sorted.
func (a *Auth) ACL() (acl []zk.ACL) {
	for _, secret := range a.Secrets {
		user, password, _ := strings.Cut(string(secret), ":")
		acl = append(acl, zk.DigestACL(zk.PermAll, user, password)...)
	}
	return Sorted(acl)
}

// Sorted sorts an ACL: ZooKeeper keeps no order.
func Sorted(acl []zk.ACL) []zk.ACL {
	acl = slices.Clone(acl)
	slices.SortFunc(acl, func(a, b zk.ACL) int { return strings.Compare(a.ID, b.ID) })
	return slices.Compact(acl)
}

// owns reports whether an ACL gives the credentials all rights.
func (a *Auth) owns(acl []zk.ACL) bool {
	ours := append(a.ACL(), zk.WorldACL(zk.PermAll)...)
	return slices.ContainsFunc(acl, func(entry zk.ACL) bool { return slices.Contains(ours, entry) })
}

// Renew uses other credentials from now on, on a new connection of the same session, which nobody notices. It returns
// ErrNotOurs, and keeps the previous ones, if they do not own all znodes that nodes work with: this node would lose its rights
// to the others.
func (s *Session) Renew(ctx context.Context, a *Auth) error {
	tree := s.tree(ctx)
	if err := tree.belongs(s.cfg.Root, a); err != nil {
		return err
	}
	previous := s.dialer.shown()
	// A znode that is being created at this moment belongs to the previous credentials alone. From here on, to all of them.
	s.dialer.authenticate(&Auth{Scheme: a.Scheme, Secrets: slices.Concat(previous.Secrets, a.Secrets), File: a.File})
	if err := tree.belongs(s.cfg.Root, a); err != nil {
		s.dialer.authenticate(previous)
		return err
	}
	s.dialer.authenticate(a)
	return nil
}

// belongs looks at a folder and all below it.
func (t ACLReader) belongs(path string, a *Auth) error {
	acl, err := t.ACL(path)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil // an ephemeral that has gone
	case err != nil:
		return fmt.Errorf("read the ACL of %s: %w", path, err)
	case !a.owns(acl):
		return fmt.Errorf("%s %w", path, ErrNotOurs)
	case strings.HasSuffix(path, "/"+historyName): // its entries are many, and come and go
		return nil
	}
	names, err := t.Children(path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list %s: %w", path, err)
	}
	for _, name := range names {
		if err := t.belongs(path+"/"+name, a); err != nil {
			return err
		}
	}
	return nil
}

// insist repeats a read until it is answered.
func insist[T any](ctx context.Context, c *client, f func() (T, error)) (T, error) {
	return outcome(ctx, c, func() (T, error) { return call(ctx, c, f) })
}
