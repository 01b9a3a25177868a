package zkfaults

import (
	"net"
	"strings"
	"sync"
	"time"

	"understudy/election/jute"
)

// Client is one connection as the selectors of faults see it. SessionID is 0 until the client has named its session
// or got a new one.
type Client struct {
	SessionID int64
	Addr      net.Addr
}

// Selector chooses connections.
type Selector func(Client) bool

// Everyone selects all connections.
func Everyone(Client) bool { return true }

// Session selects the connections of one session, those that try to take it over included.
func Session(id int64) Selector { return func(c Client) bool { return c.SessionID == id } }

// From selects connections by their remote address.
func From(pred func(net.Addr) bool) Selector { return func(c Client) bool { return pred(c.Addr) } }

// Direction says which way a cut goes.
type Direction int

// The directions of a cut, as the server sees them.
const (
	Both     Direction = iota
	Inbound            // from client to server
	Outbound           // from server to client
)

// Always is the Count of a Match that does not wear out.
const Always = -1

// Match chooses requests. The zero value of each field matches any. A transaction matches by itself, its path being
// that of any of its steps, and also if one of its steps alone matches. A handshake is a createSession without path.
type Match struct {
	Op      jute.Op
	Path    string // a part of the path
	Session int64
	Count   int // how often it acts: once when zero; see Always
}

type actionKind int

const (
	actNone actionKind = iota
	actCloseBefore
	actCloseAfter
	actLoseReply
	actRefuse
)

type action struct {
	kind actionKind
	code jute.Code
}

type trap struct {
	match Match
	left  int
	act   action
}

// cut is a standing disturbance of the connections it selects, those opened later included.
type cut struct {
	selects Selector
	in, out bool
	delay   time.Duration
}

// faults is what tests do to a server's clients.
type faults struct {
	mu      *sync.Mutex // the server's: guards what follows
	clients *clients
	cuts    []*cut
	traps   []*trap
}

// shape puts the disturbances that apply to a connection into force.
func (f *faults) shape(c *conn) {
	var in, out bool
	var delay time.Duration
	client := Client{c.Session, c.net.RemoteAddr()}
	for _, d := range f.cuts {
		if d.selects(client) {
			in, out, delay = in || d.in, out || d.out, max(delay, d.delay)
		}
	}
	c.in.condition(in, delay)
	c.out.condition(out, delay)
}

// event is a request as a Match looks at it.
type event struct {
	op      jute.Op
	session int64
	paths   []string
	steps   jute.Multi
}

// eventOf makes a request's fields comparable with a Match. Requests that make no sense have an empty path.
func eventOf(op jute.Op, session int64, body []byte) event {
	ev := event{op: op, session: session}
	switch op {
	case jute.OpMulti:
		_ = jute.Unmarshal(body, &ev.steps)
		for _, step := range ev.steps {
			ev.paths = append(ev.paths, step.Path())
		}
	case jute.OpPing, jute.OpCloseSession, jute.OpSetWatches:
	default:
		var path jute.Path
		_ = jute.Unmarshal(body, &path)
		ev.paths = append(ev.paths, string(path))
	}
	if len(ev.paths) == 0 {
		ev.paths = []string{""}
	}
	return ev
}

func (m Match) matches(ev event) bool {
	if m.Session != 0 && m.Session != ev.session {
		return false
	}
	if m.Op == 0 || m.Op == ev.op {
		for _, path := range ev.paths {
			if strings.Contains(path, m.Path) {
				return true
			}
		}
	}
	for _, step := range ev.steps {
		if m.Op == step.Op && strings.Contains(step.Path(), m.Path) {
			return true
		}
	}
	return false
}

// take finds the first trap that a request springs.
func (f *faults) take(ev event) action {
	for i, t := range f.traps {
		if !t.match.matches(ev) {
			continue
		}
		if t.left > 0 {
			if t.left--; t.left == 0 {
				f.traps = append(f.traps[:i:i], f.traps[i+1:]...)
			}
		}
		return t.act
	}
	return action{}
}

func (f *faults) set(m Match, act action) {
	if m.Count == 0 {
		m.Count = 1
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.traps = append(f.traps, &trap{m, m.Count, act})
}

// CloseBefore drops the connection on which a matching request arrives, and does not carry it out.
func (f *faults) CloseBefore(m Match) { f.set(m, action{kind: actCloseBefore}) }

// CloseAfter carries a matching request out and drops the connection instead of answering.
func (f *faults) CloseAfter(m Match) { f.set(m, action{kind: actCloseAfter}) }

// LoseReply carries a matching request out, but from then on nothing gets through to that client any more,
// while the connection stays open and the server goes on hearing it.
func (f *faults) LoseReply(m Match) { f.set(m, action{kind: actLoseReply}) }

// Refuse answers a matching request with a code instead of carrying it out.
func (f *faults) Refuse(m Match, code jute.Code) { f.set(m, action{kind: actRefuse, code: code}) }

// Forget takes all of CloseBefore, CloseAfter, LoseReply and Refuse back that have not acted yet.
func (f *faults) Forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.traps = nil
}

func (f *faults) disturb(c *cut) (end func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cuts = append(f.cuts, c)
	f.reshape()
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		for i, other := range f.cuts {
			if other == c {
				f.cuts = append(f.cuts[:i:i], f.cuts[i+1:]...)
				break
			}
		}
		f.reshape()
	}
}

func (f *faults) reshape() {
	for _, c := range f.clients.inOrder() {
		f.shape(c)
	}
}

// Cut makes the selected connections, present and future, silently carry nothing in that direction: they stay open,
// and neither side learns of the other's end. Frames sent meanwhile arrive when the cut is healed, as TCP has it.
// The function returned heals this cut.
func (f *faults) Cut(selects Selector, way Direction) (heal func()) {
	return f.disturb(&cut{selects: selects, in: way != Outbound, out: way != Inbound})
}

// Delay makes every frame of the selected connections take that much longer, each way. The function returned ends it.
func (f *faults) Delay(selects Selector, d time.Duration) (end func()) {
	return f.disturb(&cut{selects: selects, delay: d})
}

// Heal ends every Cut and Delay.
func (f *faults) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cuts = nil
	f.reshape()
}
