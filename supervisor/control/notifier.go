package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/wait"
)

// Notifier tells people what happens to the services of a cluster. Of all that run, one is on duty. What is told stands in ZooKeeper before
// it is sent, and is taken from there after: if the sender dies between, the next one on duty sends it again.
type Notifier struct {
	Cluster *SharedCluster // its own
	Root    string
	Node    string
	Send    func(context.Context, Notice) error
	Lacks   func(context.Context) error // why Send could not work on this node; nil: nothing is known to be missing
	Untold  func(why error)             // has the status say why people are not told, or would not be; nil: they are
	Log     hclog.Logger

	seen map[string]sight
}

const (
	turnEvery    = 5 * time.Second
	turnLasts    = 30 * time.Second
	afterFailure = 30 * time.Second
)

// Run looks, and tells, until ctx ends.
func (n *Notifier) Run(ctx context.Context) {
	defer n.Cluster.Close()
	for pause := turnEvery; wait.For(ctx, pause); {
		pause = turnEvery
		if err := n.turn(ctx); err != nil && ctx.Err() == nil {
			n.Log.Warn("cannot tell people what has happened, trying again", "error", err)
			pause = afterFailure
		}
	}
}

func (n *Notifier) turn(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, turnLasts)
	defer cancel()
	return n.Cluster.with(ctx, func(c *Cluster) error { return n.look(ctx, c, time.Now()) })
}

// ledger is what is in ZooKeeper.
type ledger struct {
	Told    map[string]told `json:"told"`
	Notice  *Notice         `json:"notice,omitempty"` // may not be sent yet
	version int32           // -1: it is not there
}

func (n *Notifier) look(ctx context.Context, c *Cluster, now time.Time) error {
	ours, _, err := c.own(ctx, election.Notifier(n.Root), n.Node) // one is on duty
	if err != nil || !ours {
		n.seen = nil
		n.Untold(n.Lacks(ctx))
		return err
	}
	l, err := c.ledger(ctx)
	if err != nil {
		return err
	}
	if l.Notice == nil {
		n.Untold(n.Lacks(ctx))
		before, _ := json.Marshal(l.Told)
		events, err := n.events(ctx, c, l, now)
		if err != nil {
			return err
		}
		if len(events) > 0 {
			l.Notice = noticeOf(events, n.Root, now)
		}
		if after, _ := json.Marshal(l.Told); l.Notice == nil && string(after) == string(before) {
			return nil
		}
		if err := c.keep(ctx, l); err != nil || l.Notice == nil {
			return err
		}
	}
	err = n.Send(ctx, *l.Notice)
	n.Untold(err)
	if err != nil {
		return err
	}
	n.Log.Info("told people", "what", l.Notice.Text)
	l.Notice = nil
	return c.keep(ctx, l)
}

// events is what people have not been told, and notes in the ledger that they are.
func (n *Notifier) events(ctx context.Context, c *Cluster, l *ledger, now time.Time) (events []Event, err error) {
	s, err := c.Status(ctx)
	if err != nil {
		return nil, err
	}
	if n.seen == nil {
		n.seen = map[string]sight{}
	}
	next := map[string]told{}
	for _, v := range s.Services {
		was, known := l.Told[v.Service]
		if !known {
			was = told{v.Token, Healthy.String()}
		}
		if v.Active != "" && v.Token > was.Token {
			e, yes, over, err := c.takeover(ctx, v, was)
			switch {
			case err != nil:
				return nil, err
			case yes:
				events = append(events, e)
			}
			if over {
				was.Token = v.Token
			}
		}
		if e, yes := n.changed(v, was, now); yes {
			events, was.Verdict = append(events, e), e.Event
		}
		next[v.Service] = was
	}
	l.Told = next
	return events, nil
}

// own makes a znode that goes with this session, unless another session has it. owner is what whoever made it has written.
func (z znodes) own(ctx context.Context, path, text string) (ours bool, owner string, err error) {
	n, err := z.read(ctx, path)
	switch {
	case err != nil:
		return false, "", err
	case n.exists && n.stat.EphemeralOwner == 0:
		return false, "", fmt.Errorf("%s was made by hand, and belongs to no session: delete it", path)
	case n.exists:
		return n.stat.EphemeralOwner == z.conn.SessionID(), string(n.data), nil
	}
	_, err = ask(ctx, "create "+path, func() (string, error) { return z.conn.Create(path, []byte(text), zk.FlagEphemeral, z.acl) })
	switch {
	case errors.Is(err, zk.ErrNodeExists): // it was quicker
		return false, "another session", nil
	case errors.Is(err, zk.ErrNoNode):
		return false, "", nil // no supervisor ever was here
	}
	return err == nil, text, err
}

func (c *Cluster) ledger(ctx context.Context) (*ledger, error) {
	z, err := c.read(ctx, election.Notices(c.root))
	l := &ledger{version: -1}
	if err != nil || !z.exists {
		return l, err
	}
	if err := json.Unmarshal(z.data, l); err != nil { // a stranger's: begin anew
		*l = ledger{}
	}
	l.version = z.stat.Version
	return l, nil
}

// keep writes the ledger, unless somebody else has since it was read.
func (c *Cluster) keep(ctx context.Context, l *ledger) error {
	p := election.Notices(c.root)
	data, err := json.Marshal(l)
	if err != nil {
		return err
	}
	_, err = ask(ctx, "write "+p, func() (any, error) {
		if l.version >= 0 {
			stat, err := c.conn.Set(p, data, l.version)
			if err == nil {
				l.version = stat.Version
			}
			return nil, err
		}
		_, err := c.conn.Create(p, data, 0, c.acl)
		if err == nil {
			l.version = 0
		}
		return nil, err
	})
	return err
}
