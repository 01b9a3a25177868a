package election

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/supervisor/copies"
	"understudy/supervisor/printable"
)

// CopyReport is what a node says of its copy of a replicated program.
type CopyReport struct {
	Node    string `json:"node"`
	Host    string `json:"host"`
	Address string `json:"address"`       // how others reach it: a host, or one with a port
	Era     int64  `json:"era,omitempty"` // in which these tokens were given; see CopiesSeen
	// Followed is the token of the newest promotion whose data it has; 0: of none.
	Followed int64       `json:"followed,omitempty"`
	Toward   int64       `json:"toward,omitempty"`   // it was told to follow this promotion, and may not have its data yet
	Source   Source      `json:"source,omitzero"`    // the copy that it was told to follow last
	Position *uint64     `json:"position,omitempty"` // nil: it is not known
	Why      string      `json:"why,omitempty"`      // it is not
	Empty    bool        `json:"empty,omitempty"`    // it has no data at all, whatever it had
	Same     bool        `json:"same,omitempty"`     // and yet no data is lost: it has what it had, or more
	Had      uint64      `json:"had,omitempty"`      // the greatest position that it has told of this data
	Led      bool        `json:"led,omitempty"`      // it was promoted as Followed, and has followed no other one since
	Saw      copies.Lead `json:"saw,omitzero"`       // how far it has seen the data of another one go that was promoted
	Vacancy  int64       `json:"vacancy,omitempty"`  // in which the position was asked; see Question
	// The token under which this node has fenced a primary, and has the copies compared once more; 0: it does not.
	Asks     int64        `json:"asks,omitempty"`
	Stands   bool         `json:"stands,omitempty"` // this node would take the lock
	Priority int          `json:"priority,omitempty"`
	Doubt    string       `json:"doubt,omitempty"`    // why its config does not keep all data
	Role     string       `json:"role,omitempty"`     // what it says that it is: follower, primary, or unknown
	Promoted int64        `json:"promoted,omitempty"` // the token under which it is the primary; 0: it is not
	Sees     *SeenPrimary `json:"sees,omitempty"`     // nil: it does not say
}

// ReadCopyReport reads what a node says of its copy, wholly or not at all: its words become parts of commands, environments and URLs.
func ReadCopyReport(node string, data []byte) (CopyReport, error) {
	about, err := decode[CopyReport](data)
	about.Node = node
	switch {
	case err != nil:
	case !printable.IsName(node):
		err = fmt.Errorf("%.80q is not plainly a node's name", node)
	case about.Host != "" && !printable.IsHost(about.Host):
		err = fmt.Errorf("%.80q is not plainly a host's name", about.Host)
	case about.Address != "" && !isReached(about.Address):
		err = fmt.Errorf("%.80q is not plainly an address", about.Address)
	}
	if err != nil {
		return CopyReport{}, fmt.Errorf("its report cannot be read: %w", err)
	}
	words := []*string{&about.Why, &about.Role, &about.Doubt}
	if about.Sees != nil {
		words = append(words, &about.Sees.Why)
	}
	for _, w := range words {
		*w = Line(*w)
	}
	return about, nil
}

// isReached reports whether text is plainly a host, or one with a port.
func isReached(text string) bool {
	_, port := printable.SplitPort(text)
	return port != "" || printable.IsHost(text)
}

// SeenPrimary is what a node whose copy follows sees of the primary from outside.
type SeenPrimary struct {
	Token int64  `json:"token"` // of that promotion
	Well  bool   `json:"well"`
	Why   string `json:"why,omitempty"` // it is not
}

// At is how far a copy's data goes. nodes/<node> says it, with each heartbeat.
type At struct {
	Token    int64     `json:"token"` // of the promotion whose data it is
	Position uint64    `json:"position"`
	Time     time.Time `json:"time"` // when it was asked
}

// Source is a copy that others follow.
type Source struct {
	Node    string `json:"node,omitempty"`
	Address string `json:"address,omitempty"`
}

// Is reports whether another one is, or may be, the same: where an address moves with the primary, all have that.
func (s Source) Is(other Source) bool {
	return s.Node != "" && s.Node == other.Node || s.Address != "" && s.Address == other.Address
}

// Promotion is the newest promotion of a replicated service.
type Promotion struct {
	Token int64 `json:"token"` // 0: there was none
	Source
	// Live are the nodes whose copies acknowledge writes, the primary among them: each acknowledged write is on two of these copies, or
	// more. None: the program decides that itself.
	Live []string `json:"live,omitempty"`

	version int32 // of the znode that it was read from
}

// ReadPromotion reads the znode of the copies.
func ReadPromotion(data []byte) (p Promotion, err error) {
	if len(data) > 0 {
		p, err = decode[Promotion](data)
	}
	for _, node := range p.Live { // they become a part of commands' environment
		if err == nil && !printable.IsName(node) {
			err = fmt.Errorf("%.80q is not plainly a node's name", node)
		}
	}
	return p, err
}

// Copies are the znodes of a replicated service's copies.
type Copies struct {
	s     *Session
	paths Paths
	there bool // the folder is, and this node is known
}

// Copies are those of the candidate's service.
func (c *Candidate) Copies() *Copies { return &Copies{s: c.s, paths: c.paths} }

// CopiesSeen is all that a node has to know to follow a copy, or to be promoted.
type CopiesSeen struct {
	Era      int64  // when the service's folder was made: tokens start again where ZooKeeper has lost its data
	Vacancy  int64  // names the time since which nobody holds the lock; 0: somebody does
	Claims   string // the newest claim, and the folder's version
	Crumb    bool   // there was a breadcrumb: whoever held the lock may not be dead
	Holder   string // of the lock
	Token    int64  // of the lock
	Promoted Promotion
	Copies   []CopyReport
	Known    []string // the nodes that have, or had, a copy
	// Doubts are why the reports of nodes, which are not among Copies, are not believed.
	Doubts map[string]string

	changed []<-chan zk.Event
}

// Of is a node's copy.
func (v CopiesSeen) Of(node string) (CopyReport, bool) {
	for _, c := range v.Copies {
		if c.Node == node {
			return c, true
		}
	}
	return CopyReport{}, false
}

// Question names the time in which positions are asked, and which no other has: a vacancy of the lock, or, below 0, its newest holder's
// term, if that has the copies compared once more. 0: nobody asks.
func (v CopiesSeen) Question() int64 {
	if v.Vacancy != 0 {
		return v.Vacancy
	}
	if holder, ok := v.Of(v.Holder); ok && holder.Asks == v.Token && holder.Promoted != v.Token {
		return -v.Token
	}
	return 0
}

// Tell writes what this node says of its copy, until its session ends.
func (c *Copies) Tell(ctx context.Context, about CopyReport) error {
	me := c.s.cfg.Node
	about.Node, about.Host = me.Node, me.Host
	return wrap("tell of the copy", c.s.own(ctx, c.paths.Copies()+"/"+me.Node, encode(about)))
}

// Untell takes that back.
func (c *Copies) Untell(ctx context.Context) error {
	return wrap("tell nothing of the copy", c.s.delete(ctx, c.paths.Copies()+"/"+c.s.cfg.Node.Node))
}

// Read reads what there is.
func (c *Copies) Read(ctx context.Context) (CopiesSeen, error) {
	return outcome(ctx, c.s.client, func() (CopiesSeen, error) { return c.look(ctx) })
}

func (c *Copies) look(ctx context.Context) (v CopiesSeen, err error) {
	if !c.there {
		known := c.paths.Known()
		if err := c.s.ensure(ctx, []string{c.paths.Copies(), known, known + "/" + c.s.cfg.Node.Node}); err != nil {
			return v, err
		}
		c.there = true
	}
	crumb, err := c.s.exists(ctx, c.paths.Crumb())
	if err != nil {
		return v, fmt.Errorf("read the breadcrumb: %w", err)
	}
	v.Crumb = crumb.exists                // read before the folder: its removal gives a vacancy another name
	names, err := c.s.names(ctx, c.paths) // before the lock: a claim and its end in between change it, and then nobody has told for it
	if err != nil {
		return v, fmt.Errorf("read %s: %w", c.paths.Dir(), err)
	}
	lock, err := c.s.getW(ctx, c.paths.Lock())
	if err != nil {
		return v, fmt.Errorf("read the lock: %w", err)
	}
	v.Era, v.Claims, v.changed = names.Folder.Ctime, names.newest(), append(v.changed, lock.changed)
	if lock.exists {
		v.Token = lock.stat.Czxid
		if holder, _ := decode[Lock](lock.data); printable.IsName(holder.Node) { // else it is another client's: nobody to follow
			v.Holder = holder.Node
		}
	} else {
		v.Vacancy = names.Folder.Pzxid
	}
	folder, err := c.s.get(ctx, c.paths.Copies())
	if err == nil && !folder.exists {
		c.there = false
		err = zk.ErrNoNode
	}
	if err != nil {
		return v, fmt.Errorf("read %s: %w", c.paths.Copies(), err)
	}
	if v.Promoted, err = ReadPromotion(folder.data); err != nil {
		return v, fmt.Errorf("read %s: %w", c.paths.Copies(), err)
	}
	if v.Known, err = c.s.children(ctx, c.paths.Known()); err != nil {
		return v, fmt.Errorf("read %s: %w", c.paths.Known(), err)
	}
	ours := v.Holder == c.s.cfg.Node.Node
	told, more, err := c.names(ctx, ours)
	if err != nil {
		return v, fmt.Errorf("read %s: %w", c.paths.Copies(), err)
	}
	if more != nil {
		v.changed = append(v.changed, more)
	}
	v.Doubts = map[string]string{}
	for _, name := range told {
		read := c.s.get
		if name == v.Holder || ours {
			read = c.s.getW // whether it is promoted yet, or what others see of it
		}
		one, err := read(ctx, c.paths.Copies()+"/"+name)
		if err != nil {
			return v, fmt.Errorf("read a copy: %w", err)
		}
		if one.changed != nil {
			v.changed = append(v.changed, one.changed)
		}
		if !one.exists {
			continue
		}
		about, err := ReadCopyReport(name, one.data)
		if err != nil {
			v.Doubts[name] = err.Error()
			continue
		}
		v.Copies = append(v.Copies, about)
	}
	return v, nil
}

func (c *Copies) names(ctx context.Context, watched bool) (names []string, changed <-chan zk.Event, err error) {
	if watched {
		return c.s.watchChildren(ctx, c.paths.Copies())
	}
	names, err = c.s.children(ctx, c.paths.Copies())
	return names, nil, err
}

// At is how far a node's copy has said that its data goes; false: it has not.
func (c *Copies) At(ctx context.Context, node string) (at At, ok bool, err error) {
	v, err := c.s.get(ctx, NodesDir(c.s.cfg.Root)+"/"+node)
	if err != nil {
		return at, false, wrap("read how far a copy is", err)
	}
	said, _ := decode[Node](v.data)
	at, ok = said.Copies[c.paths.Service]
	return at, ok, nil
}

// Wait returns when something that v shows has changed, or after d.
func (c *Copies) Wait(ctx context.Context, v CopiesSeen, d time.Duration) error {
	bounded, cancel := context.WithTimeout(ctx, d)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for _, changed := range v.changed {
		wg.Go(func() {
			select {
			case <-changed:
				cancel()
			case <-bounded.Done():
			}
		})
	}
	err := c.s.await(bounded)
	if ctx.Err() == nil && bounded.Err() != nil {
		return nil
	}
	return err
}

// Promotes notes, before the copy at this address is promoted under this claim, that it is. live: its program is told which copies
// acknowledge writes. Those that did so last go on, or all that are known.
func (c *Claim) Promotes(ctx context.Context, address string, live bool) (Promotion, error) {
	newest := Promotion{Token: c.Token, Source: Source{c.s.cfg.Node.Node, address}}
	for again := (pacing{}); ; {
		var err error
		if live {
			newest.Live, err = c.inherits(ctx)
		}
		failed := -1
		if err == nil {
			failed, err = c.notes(ctx, newest, -1)
		}
		switch {
		case err == nil:
			return newest, nil
		case errors.Is(err, zk.ErrNoAuth), failed == writeNote:
			return newest, fmt.Errorf("note the promotion: %w", err)
		}
		if err := again.wait(ctx, c.s.client, err); err != nil {
			return newest, err
		}
		if err := c.recheck(ctx); err != nil {
			return newest, err
		}
	}
}

// writeNote is the place of the write in the transaction of notes, behind its checks.
const writeNote = 2

// notes writes the record. A node that has lost its claim cannot do that any more.
func (c *Claim) notes(ctx context.Context, p Promotion, version int32) (failed int, err error) {
	note := &zk.SetDataRequest{Path: c.paths.Copies(), Data: encode(p), Version: version}
	return c.s.multi(ctx, there(c.paths.Lock()), there(c.name), note)
}

func (c *Claim) inherits(ctx context.Context) ([]string, error) {
	folder, err := c.s.get(ctx, c.paths.Copies())
	if err != nil {
		return nil, err
	}
	was, err := ReadPromotion(folder.data)
	if err != nil || len(was.Live) == 0 { // all that are known are a live set in any case
		if was.Live, err = c.s.children(ctx, c.paths.Known()); err != nil {
			return nil, err
		}
	}
	return Joined(slices.DeleteFunc(was.Live, func(node string) bool { return !printable.IsName(node) }), c.s.cfg.Node.Node), nil
}

// Joined are nodes, and others, in order.
func Joined(nodes []string, others ...string) []string {
	all := slices.Concat(nodes, others)
	slices.Sort(all)
	return slices.Compact(all)
}

// Live reads the record of this claim's promotion; false: it is another one's.
func (c *Claim) Live(ctx context.Context) (p Promotion, ours bool, err error) {
	folder, err := c.s.get(ctx, c.paths.Copies())
	if err == nil {
		p, err = ReadPromotion(folder.data)
	}
	p.version = folder.stat.Version
	return p, p.Token == c.Token, wrap("read which copies acknowledge writes", err)
}

// SetLive notes which copies do, over the record that was read. After an error that may be done later, but not after another SetLive.
func (c *Claim) SetLive(ctx context.Context, over Promotion, live []string) error {
	over.Live = live
	_, err := c.notes(ctx, over, over.version)
	return wrap("note which copies acknowledge writes", err)
}
