package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/election"
)

// ErrActive says that the session of a node's child stands, so that nothing can be sworn of it.
var ErrActive = errors.New("refused, a session is open")

// ErrSeen says that a node's own supervisor sees its child alive.
var ErrSeen = errors.New("its supervisor is connected, and sees it alive")

// patience is how often a service is read anew when it changes meanwhile.
const patience = 20

// Confirmation is what came of Confirm.
type Confirmation struct {
	Done  bool     // the breadcrumb is deleted
	Why   string   // when nothing was to be done
	Notes []string // what the operator should know of what was done
}

// Confirm deletes the breadcrumb of a node whose child the operator knows to be dead. It refuses while the breadcrumb's
// own session lives: that node is active, or ends its child by itself. So it does while the supervisor of that machine, which
// has the service, waits for the death of what it sees alive.
func (c *Cluster) Confirm(ctx context.Context, service, node string, how Confirming) (Confirmation, error) {
	if _, err := c.Services(ctx, service); err != nil {
		return Confirmation{}, err
	}
	return confirming{c.znodes, election.Paths{Root: c.root, Service: service}, node, how}.run(ctx)
}

// Confirming is who confirms, and how.
type Confirming struct {
	By    string
	Force bool // although the node's agent answers that the program is alive
	// EffectsGone: the operator has seen that what the record lists besides the program is gone, too (Confirmable).
	EffectsGone bool
	// Ask asks the node's agent, which kills the program if it can. alive: it sees the program alive. nil: the agent cannot be asked.
	Ask func(ctx context.Context, b election.BreadCrumb, token int64) (alive bool, err error)
}

// confirming is an operator's word that the child of a service on a node is dead.
type confirming struct {
	znodes
	p    election.Paths
	node string
	how  Confirming
}

// ErrEffects says that a record lists what its program did beside its processes, and nobody has looked at that.
var ErrEffects = errors.New("its record lists what the program did beside its processes")

// Confirmable looks whether there is anything to confirm, as Confirm does, and changes nothing. Pending says so, and look what has to be
// true besides the death of the program.
func (c *Cluster) Confirmable(ctx context.Context, service, node string) (look []string, pending bool, err error) {
	if _, err := c.Services(ctx, service); err != nil {
		return nil, false, err
	}
	_, record, why, err := confirming{znodes: c.znodes, p: election.Paths{Root: c.root, Service: service}, node: node}.examine(ctx)
	there, elsewhere := looks(record.Effects)
	return slices.Concat(there, elsewhere), err == nil && why == "", err
}

// examine reads the facts, and refuses what cannot be sworn. why: there is nothing to confirm.
func (o confirming) examine(ctx context.Context) (facts facts, record breadCrumb, why string, err error) {
	p, node, service := o.p, o.node, o.p.Service
	if facts, err = o.inspect(ctx); err != nil {
		return facts, record, "", err
	}
	record = parseCrumb(facts.crumb)
	switch {
	case !facts.crumb.exists:
		why, err = fmt.Sprintf("no fencing of %s is pending for %s: there is no record of an active node", node, service), o.known(ctx)
	case record.Node == "":
		err = fmt.Errorf("the record of the active node of %s cannot be read, so it is unknown whose program it is about: "+
			"when none runs anywhere, delete %s by hand", service, p.Crumb())
	case record.Node != node:
		why, err = elsewhere(service, node, record, facts.lock), o.known(ctx, record.Node)
	case record.writtenBy(facts.lock):
		err = facts.refuse(node, "holds the lock of "+service)
	case record.writtenBy(facts.node), record.Session == "" && facts.connected(): // of which nobody knows whether it is that session's
		err = facts.refuse(node, "is registered")
	case record.writtenBy(facts.member):
		path := p.Members() + "/" + node
		err = fmt.Errorf("%w. If %s is still there then, delete that znode by hand", facts.refuse(node, "holds "+path), path)
	case record.Leftover.Known && facts.sameMachine() && facts.serves():
		err = fmt.Errorf("%s cannot be confirmed dead, %w: %s. Once that is dead, its supervisor deletes the record itself; "+
			"to confirm it anyway, stop that supervisor first", node, ErrSeen, alive(record.Leftover))
	}
	return facts, record, why, err
}

func (o confirming) run(ctx context.Context) (Confirmation, error) {
	node, service := o.node, o.p.Service
	for tries := range patience {
		if err := backOff(ctx, tries); err != nil {
			return Confirmation{}, err
		}
		facts, record, why, err := o.examine(ctx)
		if err != nil || why != "" {
			return Confirmation{Why: why}, err
		}
		if there, elsewhere := looks(record.Effects); len(there)+len(elsewhere) > 0 && !o.how.EffectsGone {
			return Confirmation{}, fmt.Errorf("%w: nothing is done. Check that %s. Then add --effects-gone", ErrEffects,
				strings.Join(slices.Concat(there, elsewhere), ", and "))
		}
		asked, err := o.ask(ctx, record)
		if err != nil {
			return Confirmation{}, err
		}
		err = o.order(ctx, service, func(c election.Control) (election.Control, bool) {
			c.Confirmed = &election.Confirmed{Node: node, Token: record.token, By: o.how.By, At: time.Now().UTC()}
			return c, true
		})
		if err != nil {
			return Confirmation{}, err
		}
		err = o.erase(ctx, facts)
		if err == nil {
			return Confirmation{Done: true, Notes: slices.Concat(asked, facts.objections(node), o.obstacles(ctx))}, nil
		}
		if !errors.Is(err, errChanged) {
			return Confirmation{}, err
		}
	}
	return Confirmation{}, fmt.Errorf("%s changes too quickly: nothing is done, try again", service)
}

// ask asks the agent that the breadcrumb names, and refuses the confirmation if that sees the program alive.
func (o confirming) ask(ctx context.Context, record breadCrumb) (notes []string, err error) {
	switch {
	case record.Agent == "" || o.how.Force:
		return nil, nil
	case o.how.Ask == nil:
		return []string{fmt.Sprintf("the agent of %s at %s was not asked, because this command knows no fencing.agent secret: "+
			"use --config FILE of a node", record.Node, record.Agent)}, nil
	}
	alive, err := o.how.Ask(ctx, record.BreadCrumb, record.token)
	if alive {
		return nil, fmt.Errorf("the agent of %s answers: %w. Nothing is done; --force confirms anyway", record.Node, err)
	} else if err != nil {
		notes = append(notes, fmt.Sprintf("the agent of %s proves nothing: %v", record.Node, err))
	}
	return notes, nil
}

// elsewhere says which node the breadcrumb names when it is another one.
func elsewhere(service, node string, record breadCrumb, lock znode) string {
	if record.writtenBy(lock) {
		return fmt.Sprintf("no fencing of %s is pending for %s: %s is active", node, service, record.Node)
	}
	return fmt.Sprintf("no fencing of %s is pending for %s: it is the program of %s that may be running", node, service, record.Node)
}

// facts are a service's lock and breadcrumb, the supervisor that the breadcrumb names, what that says of the service, and the names that
// transactions check.
type facts struct {
	lock, crumb, node, member znode
	names                     election.Names
}

// inspect reads the facts as they are at the leader, or later: a server that lags behind is waited for.
func (o confirming) inspect(ctx context.Context) (facts, error) {
	p := o.p
	if _, err := insist(ctx, "sync "+p.Dir(), func() (string, error) { return o.conn.Sync(p.Dir()) }); err != nil {
		return facts{}, err
	}
	names, err := insist(ctx, "read "+p.Dir(), func() (election.Names, error) {
		children, folder, err := o.conn.Children(p.Dir())
		if err != nil {
			return election.Names{}, err
		}
		return election.NamesIn(p.Dir(), children, *folder), nil
	})
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return facts{}, err
	}
	s := facts{names: names}
	if s.crumb, err = o.read(ctx, p.Crumb()); err != nil {
		return facts{}, err
	}
	if name := parseCrumb(s.crumb).Node; name != "" {
		if s.node, err = o.read(ctx, election.NodesDir(o.root)+"/"+name); err != nil {
			return facts{}, err
		}
		if s.member, err = o.read(ctx, p.Members()+"/"+name); err != nil {
			return facts{}, err
		}
	}
	s.lock, err = o.read(ctx, p.Lock())
	return s, err
}

// errChanged says that lock or breadcrumb are not those that were read.
var errChanged = errors.New("lock or record changed in between")

// erase deletes the breadcrumb that was read, and none that was written meanwhile. P5 depends on it.
func (o confirming) erase(ctx context.Context, s facts) error {
	version := s.crumb.stat.Version
	ops, again := s.names.Change(parseCrumb(s.crumb).BreadCrumb, version, o.acl, &zk.DeleteRequest{Path: o.p.Crumb(), Version: version})
	_, err := ask(ctx, "delete the record of the active node", func() ([]zk.MultiResponse, error) { return o.conn.Multi(ops...) })
	switch {
	case err == nil && again:
		return errChanged
	case err == nil, errors.Is(err, zk.ErrNoAuth):
		return err
	case errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrBadVersion):
		return errChanged
	}
	return fmt.Errorf("it is unknown whether this was done, ask again: %w", err)
}

// known fails for a node of which nobody has ever heard.
func (o confirming) known(ctx context.Context, others ...string) error {
	s, err := (&Cluster{znodes: o.znodes}).Status(ctx, o.p.Service)
	if err != nil {
		return err
	}
	past, err := activations(ctx, o.znodes, o.p.Service)
	if err != nil {
		return err
	}
	heard := append(s.NodeNames(), others...)
	for _, a := range past {
		heard = append(heard, a.Node)
	}
	slices.Sort(heard)
	heard = slices.Compact(heard)
	if !slices.Contains(heard, o.node) {
		return &UnknownError{"node", o.node, heard}
	}
	return nil
}
