package control

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"understudy/election"
	"understudy/supervisor/printable"
)

// Forget removes what is left of a service, or of a node, that is in no config any more. It refuses what lives. It tells what the name
// was: "service" or "node".
func (c *Cluster) Forget(ctx context.Context, name string) (what string, err error) {
	s, err := c.Status(ctx)
	if err != nil {
		return "", err
	}
	for _, v := range s.Services {
		if v.Service == name {
			return "service", c.forgetService(ctx, v)
		}
	}
	if !slices.Contains(s.NodeNames(), name) {
		all := s.Forgettable()
		if len(all) == 0 {
			all = s.NodeNames()
			for _, v := range s.Services {
				all = append(all, v.Service)
			}
		}
		return "", &UnknownError{"service or node to forget", name, all}
	}
	return "node", c.forgetNode(ctx, s, name)
}

// Forgettable are the services and nodes that do not live.
func (s Status) Forgettable() (all []string) {
	for _, v := range s.Services {
		if lives(v) == "" {
			all = append(all, v.Service)
		}
	}
	return append(all, slices.DeleteFunc(s.NodeNames(), func(node string) bool {
		return s.Connected(node) || slices.ContainsFunc(s.Services, func(v ServiceStatus) bool { return v.Involves(node) })
	})...)
}

// forgetNode removes what of a node outlasts its session: the order that drains it, and the node from the lists of those that are known and
// of those that have a copy.
func (c *Cluster) forgetNode(ctx context.Context, s Status, node string) error {
	if s.Connected(node) {
		return refused("%s is connected: stop its supervisor first", node)
	}
	for _, v := range s.Services {
		switch {
		case v.Fencing != nil && v.Fencing.Node == node:
			return refused("the program of %s may still run on %s: see `understudy status %s`", v.Service, node, printable.Word(v.Service))
		case v.Involves(node):
			return refused("%s has a part in %s: see `understudy status %s`", node, v.Service, printable.Word(v.Service))
		}
	}
	for _, v := range s.Services {
		if _, err := c.remove(ctx, path.Join(election.Paths{Root: c.root, Service: v.Service}.Known(), node)); err != nil {
			return err
		}
	}
	for _, dir := range []string{election.DrainedDir(c.root), election.KnownDir(c.root)} {
		if _, err := c.remove(ctx, path.Join(dir, node)); err != nil {
			return err
		}
	}
	return nil
}

// forgetService deletes a service's znodes in one transaction. A node that joins at the same time has made one of its own, and the
// transaction fails, or it makes them anew.
func (c *Cluster) forgetService(ctx context.Context, v ServiceStatus) error {
	p := election.Paths{Root: c.root, Service: v.Service}
	for tries := range patience {
		if err := backOff(ctx, tries); err != nil {
			return err
		}
		if v, err := c.service(ctx, v.Service); err != nil {
			return err
		} else if why := lives(v); why != "" {
			return refused("%s", why)
		}
		paths, err := c.below(ctx, p.Dir())
		if err != nil {
			return err
		}
		ops := make([]any, len(paths))
		for i, path := range paths {
			if slices.Contains([]string{p.Lock(), p.Crumb()}, path) ||
				slices.Contains([]string{p.Members(), p.Queue(), p.Preferred(), p.Copies()}, parent(path)) {
				return refused("a node has just joined %s", v.Service)
			}
			if !p.Has(path) {
				return refused("%s is no part of a service, but perhaps of another cluster, whose root is below %s", path, c.root)
			}
			ops[i] = &zk.DeleteRequest{Path: path, Version: -1}
		}
		_, err = ask(ctx, "delete "+p.Dir(), func() ([]zk.MultiResponse, error) { return c.conn.Multi(ops...) })
		switch {
		case err == nil:
			return nil
		case errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrNotEmpty), errors.Is(err, zk.ErrAPIError), lost(err):
			// It changes, or is gone.
			if here, err := c.read(ctx, p.Dir()); err != nil || !here.exists {
				return err
			}
		default:
			return err
		}
	}
	return fmt.Errorf("the znodes of %s change too quickly: nothing is done, try again", v.Service)
}

func parent(of string) string { return of[:strings.LastIndexByte(of, '/')] }

// lives tells why a service cannot be forgotten; "": it can.
func lives(v ServiceStatus) string {
	switch {
	case v.Lock != "":
		return fmt.Sprintf("%s holds the lock of %s", v.Lock, v.Service)
	case v.Fencing != nil && v.Fencing.Node != "":
		return fmt.Sprintf("the program may still run on %s: see `understudy status %s`", v.Fencing.Node, v.Service)
	case v.Fencing != nil:
		return fmt.Sprintf("the record of the previous active node of %s cannot be read", v.Service)
	case len(v.Members) > 0:
		return fmt.Sprintf("%s has it in its config: take it out on every node first", strings.Join(names(v.Members), ", "))
	}
	return ""
}

// below lists a znode with all that is below it, each before its parent.
func (z znodes) below(ctx context.Context, top string) (paths []string, err error) {
	names, err := z.children(ctx, top)
	for _, name := range names {
		if err != nil {
			break
		}
		var more []string
		more, err = z.below(ctx, top+"/"+name)
		paths = append(paths, more...)
	}
	return append(paths, top), err
}
