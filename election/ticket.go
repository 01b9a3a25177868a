package election

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/election/jute"
	"understudy/supervisor/keyfile"
	"understudy/supervisor/wait"
)

// Ticket lets another process close a session: for ZooKeeper, id and password are enough.
type Ticket struct {
	Servers   []string            `json:"servers"`
	Addresses map[string][]string `json:"addresses,omitempty"` // of their names, as far as they are known
	Session   int64               `json:"session"`
	Password  []byte              `json:"password"`
	Lease     time.Duration       `json:"lease"`
	Auth      *Auth               `json:"auth,omitempty"`
	TLS       *keyfile.TLS        `json:"tls,omitempty"`
}

// Release names the lock and the breadcrumb of a child that may be running under a session.
type Release struct {
	Dir   string `json:"dir"`
	Lock  string `json:"lock"`
	Crumb string `json:"crumb"`
	// Of the child's effects, by whoever closes the session: they are proved undone, or known to be left. Else a breadcrumb that lists
	// effects says that they are left.
	Undone bool `json:"-"`
	Left   bool `json:"-"`
}

// Ticket returns a ticket that closes this session.
func (s *Session) Ticket() Ticket {
	id, password := s.identity()
	return Ticket{
		Servers: s.cfg.Servers, Addresses: s.cfg.resolver().known(s.cfg.Servers), Session: id, Password: password, Lease: s.LeaseLength(),
		Auth: s.dialer.shown(), TLS: s.cfg.TLS,
	}
}

// Close takes the session over, removes the breadcrumbs and locks of children that ended then, and, if no process of
// the session is alive, closes it: P2. It retries until it has succeeded, the session is over, or ctx ends.
func (t Ticket) Close(ctx context.Context, dial DialFunc, dead []Release, end Ending, all bool) error {
	return t.close(ctx, dial, dead, closing{end: end, all: all})
}

// closing says how to close a session.
type closing struct {
	end Ending // of the programs whose locks it gives back
	all bool   // no process of the session is alive
}

func (t Ticket) close(ctx context.Context, dial DialFunc, dead []Release, how closing) error {
	dial = (&Config{Dial: dial, TLS: t.TLS}).dialing()
	resolved.keep(t.Addresses)
	t.Auth = t.Auth.widened() // they may have changed since; Close creates no znode
	first := rand.IntN(len(t.Servers))
	for tries := 0; ; tries++ {
		err := t.closeAt(ctx, dial, t.Servers[(first+tries)%len(t.Servers)], dead, how)
		if err == nil {
			return err
		}
		round := min(tries/len(t.Servers), 4)
		if !wait.For(ctx, 20*time.Millisecond<<round+rand.N(20*time.Millisecond)) {
			return fmt.Errorf("close session %s: %w (%w)", SessionName(t.Session), err, context.Cause(ctx))
		}
	}
}

func (t Ticket) closeAt(ctx context.Context, dial DialFunc, server string, dead []Release, how closing) error {
	ctx, cancel := context.WithTimeout(ctx, stallLimit(t.Lease))
	defer cancel()
	conn, err := dial(ctx, server)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	c := caller{conn: conn, closing: how}
	alive, err := c.takeOver(t)
	switch {
	case err != nil:
		return err
	case !alive:
		return t.removeUndone(ctx, dial, server, dead)
	}
	if err := c.release(ctx, t, dead); err != nil {
		return err
	}
	if !how.all {
		return nil
	}
	_, err = c.ask(request{jute.OpCloseSession, nil})
	return err
}

// removeUndone removes the records of a session that is over whose effects are undone: nobody else can know that they are, so no node would
// start the service.
func (t Ticket) removeUndone(ctx context.Context, dial DialFunc, server string, dead []Release) error {
	dead = slices.DeleteFunc(slices.Clone(dead), func(r Release) bool { return !r.Undone })
	if len(dead) == 0 {
		return nil // as wanted
	}
	conn, err := dial(ctx, server)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	c := caller{conn: conn, late: true}
	alive, err := c.takeOver(Ticket{Password: make([]byte, 16), Lease: t.Lease, Auth: t.Auth}) // a new one
	switch {
	case err != nil:
		return err
	case !alive:
		return errors.New("no session to remove a record in")
	}
	err = c.release(ctx, t, dead)
	_, closed := c.ask(request{jute.OpCloseSession, nil})
	return cmp.Or(err, closed)
}

// caller sends requests, many at a time, and reads their answers.
type caller struct {
	conn net.Conn
	xid  int32
	late bool // the session is over: when its programs ended is noted, or not known
	closing
}

type request struct {
	op   jute.Op
	body jute.Record
}

type reply struct {
	code          jute.Code
	jute.DataStat          // of a read
	children      []string // of a folder
	folder        jute.Stat
}

func (c *caller) takeOver(t Ticket) (alive bool, err error) {
	hello := jute.Frame(jute.ConnectRequest{
		Timeout: int32(sessionTimeout(t.Lease).Milliseconds()), SessionID: t.Session, Password: t.Password,
	})
	if _, err := c.conn.Write(hello); err != nil {
		return false, err
	}
	frame, err := jute.ReadFrame(c.conn, maxFrame)
	if err != nil {
		return false, err
	}
	var greeting jute.ConnectResponse
	if err := jute.Unmarshal(frame, &greeting); err != nil {
		return false, err
	}
	switch {
	case greeting.SessionID == 0:
		return false, nil
	case t.Session != 0 && greeting.SessionID != t.Session:
		return false, fmt.Errorf("%w: it answered with another session", ErrForgets)
	}
	if t.Auth != nil {
		_, err = c.conn.Write(t.Auth.frames())
	}
	return true, err
}

// mostReleases is how often Close reads a session's znodes again because they have changed. After that, the next claimant has to fence.
const mostReleases = 5

// release removes the locks and breadcrumbs of children that are dead.
func (c *caller) release(ctx context.Context, t Ticket, dead []Release) error {
	for tries := range mostReleases {
		if len(dead) == 0 {
			return nil
		}
		if tries > 1 && !wait.For(ctx, 10*time.Millisecond<<tries) {
			return context.Cause(ctx)
		}
		var err error
		if dead, err = c.releaseAsSeen(t, dead); err != nil {
			return err
		}
	}
	if c.late && len(dead) > 0 {
		return fmt.Errorf("%s: %w", dead[0].Crumb, errUnanswered)
	}
	return nil
}

// releaseAsSeen returns what has changed between reading and removal. It does not remove a breadcrumb that names another session, nor its
// lock. A breadcrumb whose effects are not proved undone stays, and says that they are left.
func (c *caller) releaseAsSeen(t Ticket, dead []Release) (changed []Release, err error) {
	// The server may lag behind, and would miss a breadcrumb that was written, or signed, a moment ago.
	reads := make([]request, 0, 1+3*len(dead))
	reads = append(reads, request{jute.OpSync, jute.Path(dead[0].Dir)})
	for _, r := range dead {
		reads = append(reads, request{jute.OpGetChildren2, jute.PathWatch{Path: r.Dir}}) // first: it reveals later claims
		for _, path := range []string{r.Crumb, r.Lock} {
			reads = append(reads, request{jute.OpGetData, jute.PathWatch{Path: path}})
		}
	}
	answers, err := c.ask(reads...)
	if err != nil {
		return nil, err
	}
	var notes, writes []request
	var of []Release
	for i, r := range dead {
		dir, crumb, lock := answers[3*i+1], answers[3*i+2], answers[3*i+3]
		if dir.code != jute.OK || crumb.code != jute.OK {
			continue
		}
		named, err := ReadBreadCrumb(crumb.Data)
		if err != nil || named.Session != SessionName(t.Session) {
			continue
		}
		var write any = &zk.DeleteRequest{Path: r.Crumb, Version: crumb.Stat.Version}
		left := r.left(named)
		if len(left) > 0 { // P2: the lock goes with the session alone
			write = &zk.SetDataRequest{Path: r.Crumb, Data: leaveEffects(crumb.Data, left), Version: crumb.Stat.Version}
		}
		change, again := NamesIn(r.Dir, dir.children, zk.Stat(dir.folder)).Change(named, crumb.Stat.Version, nil, write)
		if again { // its name was deleted by hand, and we make no znode: the next claimant has to fence
			if c.late {
				return nil, fmt.Errorf("%s: its name was deleted", r.Crumb)
			}
			continue
		}
		if len(left) == 0 && lock.code == jute.OK && lock.Stat.EphemeralOwner == t.Session {
			change = append(change, remove(r.Lock))
		}
		ops := multiOf(change)
		writes, of = append(writes, request{jute.OpMulti, ops}), append(of, r)
		if c.late {
			continue
		}
		note := note{cmp.Or(named.Token, crumb.Stat.Czxid), c.end} // a breadcrumb without a token was written together with the lock
		notes = append(notes, request{jute.OpSetData, jute.SetData{Path: r.Dir + "/" + historyName, Data: encode(note), Version: -1}})
	}
	answers, err = c.ask(append(notes, writes...)...) // a note that is refused delays nothing
	for i, a := range answers[min(len(notes), len(answers)):] {
		if a.code == jute.BadVersion || a.code == jute.NoNode {
			changed = append(changed, of[i])
		} else if c.late && a.code != jute.OK {
			err = fmt.Errorf("remove %s: %w", of[i].Crumb, a.code)
		}
	}
	return changed, err
}

// multiOf is a transaction of checks, writes and deletions.
func multiOf(ops []any) (all jute.Multi) {
	for _, op := range ops {
		switch o := op.(type) {
		case *zk.CheckVersionRequest:
			all = append(all, jute.CheckOp(o.Path, o.Version))
		case *zk.SetDataRequest:
			all = append(all, jute.SetDataOp(jute.SetData{Path: o.Path, Data: o.Data, Version: o.Version}))
		case *zk.DeleteRequest:
			all = append(all, jute.DeleteOp(o.Path, o.Version))
		}
	}
	return all
}

// left is what may be left of the effects that a breadcrumb lists.
func (r Release) left(named BreadCrumb) []string {
	left := named.Union()
	switch {
	case r.Undone:
		return nil
	case r.Left && len(left) == 0:
		return []string{"unknown"}
	}
	return left
}

func (c *caller) ask(requests ...request) ([]reply, error) {
	var out []byte
	for _, r := range requests {
		c.xid++
		records := []jute.Record{jute.RequestHeader{Xid: c.xid, Op: r.op}}
		if r.body != nil {
			records = append(records, r.body)
		}
		out = append(out, jute.Frame(records...)...)
	}
	if _, err := c.conn.Write(out); err != nil {
		return nil, err
	}
	replies := make([]reply, 0, len(requests))
	for len(replies) < len(requests) {
		frame, err := jute.ReadFrame(c.conn, maxFrame)
		if err != nil {
			return nil, err
		}
		var head jute.ReplyHeader
		if err := jute.Unmarshal(frame, &head); err != nil {
			return nil, err
		}
		if head.Xid < 0 { // an event, a ping, or the answer to our credentials
			if head.Xid == xidAuth && head.Code != 0 {
				return nil, errAuthRefused
			}
			continue
		}
		if head.Code == jute.SessionMoved || head.Code == jute.SessionExpired {
			return nil, head.Code
		}
		r := reply{code: head.Code}
		if requests[len(replies)].op == jute.OpGetData && head.Code == jute.OK {
			if err := jute.Unmarshal(frame[16:], &r.DataStat); err != nil {
				return nil, err
			}
		}
		if requests[len(replies)].op == jute.OpGetChildren2 && head.Code == jute.OK {
			var in jute.ChildrenStat
			if err := jute.Unmarshal(frame[16:], &in); err != nil {
				return nil, err
			}
			r.children, r.folder = in.Children, in.Stat
		}
		if requests[len(replies)].op == jute.OpMulti && head.Code == jute.OK {
			var results jute.MultiResponse
			if err := jute.Unmarshal(frame[16:], &results); err != nil {
				return nil, err
			}
			errors.As(results.Err(), &r.code)
		}
		replies = append(replies, r)
	}
	return replies, nil
}

// EncodeTicket and EncodeRelease encode for the guardians, which call CloseEncoded.
func EncodeTicket(t Ticket) []byte { return encode(t) }

// EncodeRelease is EncodeTicket's counterpart for one service.
func EncodeRelease(p Paths) []byte { return encode(p.Release()) }

// Closing is an order to close a session, by a guardian: the releases of children that are dead, by what is known of their effects.
type Closing struct {
	Ticket             []byte
	Dead, Undone, Left [][]byte
	End                Ending // of all of them
	All                bool   // every child of the session is dead, and its effects are undone
}

// CloseEncoded is Ticket.Close for encoded values.
func CloseEncoded(ctx context.Context, c Closing, dial DialFunc) error {
	t, dead, err := c.Decode()
	if err != nil {
		return err
	}
	return t.Close(ctx, dial, dead, c.End, c.All)
}

// Decode returns the session's ticket, and its releases.
func (c Closing) Decode() (Ticket, []Release, error) {
	t, err := decode[Ticket](c.Ticket)
	switch {
	case err != nil:
		return Ticket{}, nil, fmt.Errorf("session ticket: %w", err)
	case len(t.Servers) == 0 || t.Session == 0 || t.Lease <= 0:
		return Ticket{}, nil, errors.New("session ticket: no servers, no session or no lease")
	}
	var dead []Release
	for i, r := range slices.Concat(c.Dead, c.Undone, c.Left) {
		d, err := decode[Release](r)
		if err != nil {
			return Ticket{}, nil, fmt.Errorf("release: %w", err)
		}
		known := i - len(c.Dead)
		d.Undone, d.Left = known >= 0 && known < len(c.Undone), known >= len(c.Undone)
		dead = append(dead, d)
	}
	return t, dead, nil
}
