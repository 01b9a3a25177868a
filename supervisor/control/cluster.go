package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"understudy/election"
)

// Cluster is a connection to all services below one root.
type Cluster struct {
	znodes
	auth *election.Auth
}

// Open connects to ZooKeeper. The Cluster is to be closed.
func Open(ctx context.Context, cfg election.Config) (*Cluster, error) {
	conn, err := election.Connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &Cluster{znodes{conn, cfg.Root, election.ACL(cfg)}, cfg.Auth}, nil
}

// Where is what the cluster is below.
func (c *Cluster) Where() string { return c.root + " on " + c.conn.Server() }

// Close ends the connection.
func (c *Cluster) Close() { c.conn.Close() }

// ErrUnknown is what every UnknownError is.
var ErrUnknown = errors.New("unknown")

// UnknownError says that there is no such service or node, and which ones there are.
type UnknownError struct {
	Kind, Name string
	Known      []string
}

const mostNamed = 10 // of the names that there are

func (e *UnknownError) Error() string {
	if len(e.Known) == 0 {
		return fmt.Sprintf("no %s %q: there is none yet", e.Kind, e.Name)
	}
	known := e.Known
	if more := len(known) - mostNamed; more > 0 {
		known = append(slices.Clone(known[:mostNamed]), fmt.Sprint(more, " more"))
	}
	return fmt.Sprintf("no %s %q; there is: %s", e.Kind, e.Name, strings.Join(known, ", "))
}

// Is makes it ErrUnknown.
func (*UnknownError) Is(target error) bool { return target == ErrUnknown }

var digits = regexp.MustCompile(`\d+`)

// inOrder sorts names as a person would: s2 is before s10.
func inOrder(names []string) {
	keys := map[string]string{}
	for _, name := range names {
		keys[name] = digits.ReplaceAllStringFunc(name, func(n string) string { return strings.Repeat("0", max(20-len(n), 0)) + n })
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(keys[a], keys[b]) })
}

// Services lists the services asked for: all when none is named.
func (c *Cluster) Services(ctx context.Context, asked ...string) ([]string, error) {
	all, err := c.children(ctx, election.ServicesDir(c.root))
	inOrder(all)
	if err != nil || len(asked) == 0 {
		return all, err
	}
	for _, name := range asked {
		if !slices.Contains(all, name) {
			return nil, &UnknownError{"service", name, all}
		}
	}
	return asked, nil
}
