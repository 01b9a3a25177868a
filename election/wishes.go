package election

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// Control is what operators want of a service.
type Control struct {
	Paused     bool        `json:"paused,omitempty"` // nobody is promoted
	Why        string      `json:"why,omitempty"`
	By         string      `json:"by,omitempty"`
	Since      *time.Time  `json:"since,omitempty"`
	Switchover *Switchover `json:"switchover,omitempty"` // pending
	Restart    *Errand     `json:"restart,omitempty"`    // pending
	Reload     *Errand     `json:"reload,omitempty"`     // pending
}

// Errand is an order for the activation that it names, and for no later one. Whoever has carried it out removes it.
type Errand struct {
	ID    string `json:"id"`
	Token int64  `json:"token"`
	By    string `json:"by,omitempty"`
}

// Switchover orders the active node to give the service to another one.
type Switchover struct {
	Errand
	From     string    `json:"from"`
	To       string    `json:"to,omitempty"`    // empty: whoever is first
	Force    bool      `json:"force,omitempty"` // To takes it though it is not fit, or rests
	Deadline time.Time `json:"deadline"`        // until when it is waited for
}

// Forces tells whether a node is to become active although it is not fit.
func (c Control) Forces(node string) bool {
	return c.Switchover != nil && c.Switchover.Force && c.Switchover.To == node
}

// Words tell of a pause.
func (c Control) Words() string {
	words := "paused"
	if c.By != "" {
		words += " by " + c.By
	}
	if c.Why != "" {
		words += ": " + c.Why
	}
	return words
}

// Merge writes what is wanted over what was there, and keeps what only other versions know.
func (c Control) Merge(old []byte) []byte {
	all := map[string]json.RawMessage{}
	if json.Unmarshal(old, &all) != nil {
		all = map[string]json.RawMessage{} // what cannot be read is replaced
	}
	for _, key := range []string{"paused", "why", "by", "since", "switchover", "restart", "reload"} {
		delete(all, key)
	}
	if err := json.Unmarshal(encode(c), &all); err != nil {
		panic(err) // it is our own
	}
	return encode(all)
}

// ParseControl reads the control znode. One that cannot be read pauses: it was written to say something.
func ParseControl(data []byte) Control {
	if len(data) == 0 {
		return Control{}
	}
	c, err := decode[Control](data)
	if err != nil {
		return Control{Paused: true, Why: "the control znode cannot be read"}
	}
	return c
}

// Wishes are what bears on who may take a service's lock, besides its being free.
type Wishes struct {
	Control   Control
	version   int32          // of the control znode
	Preferred map[string]int // nodes that are fit to run the service, by their priority; those of priority 0 are not in it
}

// Rival is the node that is preferred to one with the given priority, or "".
func (w Wishes) Rival(self string, priority int) string {
	rival := ""
	for node, p := range w.Preferred {
		if node != self && (p > priority || p == priority && rival != "" && node < rival) {
			rival, priority = node, p
		}
	}
	return rival
}

// Heed tells the wishes, and each change of them, until ctx or the session ends, or all of the service is deleted.
func (c *Candidate) Heed(ctx context.Context, tell func(Wishes)) error {
	known := int64(0)        // the czxid of the control znode
	fit := map[string]bool{} // preferences that are known to be a session's
	for again := (pacing{}); ; {
		control, names, changed, err := c.wishes(ctx)
		if err == nil && control.stat.Czxid != known { // it may have been made anew with all of the service
			if err = c.stillThere(ctx); err == nil {
				known = control.stat.Czxid
			}
		}
		if err == nil {
			names, err = c.fit(ctx, names, fit)
		}
		if err == nil {
			tell(Wishes{ParseControl(control.data), control.stat.Version, preferred(names)})
			err = c.s.await(ctx, control.changed, changed)
		} else if unknown(err) {
			err = again.wait(ctx, c.s, err)
		}
		if errors.Is(err, zk.ErrNoNode) {
			return fmt.Errorf("%w: %w", ErrDeleted, err)
		}
		if err != nil {
			return err
		}
	}
}

// stillThere tells whether the service's folder is still the one that the candidate stood with.
func (c *Candidate) stillThere(ctx context.Context) error {
	dir, err := c.s.stat(ctx, c.paths.Dir())
	if err == nil && born(dir) != c.birth {
		return ErrDeleted
	}
	return err
}

func (c *Candidate) wishes(ctx context.Context) (control view, names []string, changed <-chan zk.Event, err error) {
	control, err = c.s.look(ctx, c.paths.Control())
	if err == nil && !control.exists { // deleted by hand
		err = c.s.ensure(ctx, []string{c.paths.Control()})
		if err == nil {
			err = errUnanswered // read it anew
		}
	}
	if err != nil {
		return control, nil, nil, err
	}
	type listing struct {
		names   []string
		changed <-chan zk.Event
	}
	l, err := call(ctx, c.s, func() (listing, error) {
		names, _, changed, err := c.s.conn.ChildrenW(c.paths.Preferred())
		return listing{names, changed}, err
	})
	if errors.Is(err, zk.ErrNoNode) {
		if err = c.s.ensure(ctx, []string{c.paths.Preferred()}); err == nil {
			err = errUnanswered
		}
	}
	return control, l.names, l.changed, err
}

// fit leaves preferences out that no session has: a restore has made them, and a node that left for one would find nobody there, again
// and again. Each is looked at once; one that a node puts in its place is listed anew.
func (c *Candidate) fit(ctx context.Context, names []string, known map[string]bool) (fit []string, err error) {
	maps.DeleteFunc(known, func(name string, _ bool) bool { return !slices.Contains(names, name) })
	for _, name := range names {
		if !known[name] {
			v, err := c.s.glance(ctx, c.paths.Preferred()+"/"+name)
			if err != nil {
				return nil, err
			}
			if !v.exists || v.stat.EphemeralOwner == 0 {
				continue
			}
			known[name] = true
		}
		fit = append(fit, name)
	}
	return fit, nil
}

// preferred reads names such as 10-db-1. The znodes hold nothing: a look at their names is all that it takes.
func preferred(names []string) map[string]int {
	all := map[string]int{}
	for _, name := range names {
		digits, node, _ := strings.Cut(name, "-")
		if p, err := strconv.Atoi(digits); err == nil && p > all[node] {
			all[node] = p
		}
	}
	return all
}

// Prefer tells the others that this node is fit, and preferred with a priority; 0 takes it back.
func (c *Candidate) Prefer(ctx context.Context, priority int) error {
	_, err := outcome(ctx, c.s, func() (struct{}, error) { return struct{}{}, c.prefer(ctx, priority) })
	return err
}

func (c *Candidate) prefer(ctx context.Context, priority int) error {
	c.priority = priority
	path := ""
	if priority > 0 {
		path = c.paths.Preferred() + "/" + strconv.Itoa(priority) + "-" + c.s.cfg.Node.Node
	}
	if old := c.preference; old != "" && old != path {
		_, err := call(ctx, c.s, func() (struct{}, error) { return struct{}{}, c.s.conn.Delete(old, -1) })
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return fmt.Errorf("take the preference back: %w", err)
		}
		c.preference = ""
	}
	if path == "" {
		return nil
	}
	c.preference = path // from now on it may be there
	if err := c.own(ctx, path, nil); err != nil {
		return fmt.Errorf("tell the preference: %w", err)
	}
	return nil
}

// First is the priority of the node that an operator wants.
const First = 1 << 30

// Advance has this node stand in the queue as with a priority, without telling that it has one.
func (c *Candidate) Advance(priority int) { c.priority = priority }

// own makes an ephemeral of this session, in place of one that a former session of this node left.
func (c *Candidate) own(ctx context.Context, path string, data []byte) error {
	err := c.ownAsSeen(ctx, path, data)
	if errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrNoNode) { // the server that was read from is behind
		if err := c.s.sync(ctx, path); err != nil {
			return err
		}
		err = c.ownAsSeen(ctx, path, data)
	}
	return err
}

func (c *Candidate) ownAsSeen(ctx context.Context, path string, data []byte) error {
	v, err := c.s.probe(ctx, path)
	switch {
	case err != nil:
		return err
	case !v.exists:
		return c.s.create(ctx, path, data, zk.FlagEphemeral)
	case v.stat.EphemeralOwner == c.s.ID():
		return c.s.set(ctx, path, data, -1)
	}
	_, err = c.s.multi(ctx, &zk.DeleteRequest{Path: path, Version: -1},
		&zk.CreateRequest{Path: path, Data: data, Acl: c.s.acl, Flags: zk.FlagEphemeral})
	return err
}

// AmendControl changes what is wanted; change tells whether there is anything to be changed. It repeats itself until it is done.
func (c *Candidate) AmendControl(ctx context.Context, change func(*Control) bool) error {
	for again := (pacing{}); ; {
		v, err := c.s.read(ctx, c.paths.Control())
		if err == nil {
			control := ParseControl(v.data)
			if !v.exists || !change(&control) {
				return nil
			}
			err = c.s.set(ctx, c.paths.Control(), control.Merge(v.data), v.stat.Version)
		}
		switch {
		case err == nil:
			return nil
		case errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNoNode), unknown(err):
		default:
			return fmt.Errorf("write what is wanted: %w", err)
		}
		if err := again.wait(ctx, c.s, err); err != nil {
			return err
		}
	}
}
