package sim

import (
	"encoding/binary"
	"time"

	"understudy/election"
	"understudy/election/jute"
)

// sight is when nodes last had reason to believe that there is no ensemble. World.mu guards it.
type sight struct {
	*checker
	newest   map[string]time.Time // by node: when it sent the newest heartbeat that was answered to it
	sees     map[string]time.Time // by node: until when it has to say, by that, that it sees one
	blind    map[string]time.Time // by node: the newest moment that was later
	leases   map[string]leaseSeen // by node, of the session that a server gave it last
	newestOf map[int64]leaseSeen  // by session
}

func newSight(c *checker) sight {
	return sight{c, map[string]time.Time{}, map[string]time.Time{}, map[string]time.Time{}, map[string]leaseSeen{}, map[int64]leaseSeen{}}
}

// answered is told that a node has the answer to a heartbeat that it sent then, on a connection: it sees an ensemble for half of its lease, by clocks that go wrong.
func (si *sight) answered(node string, b *beating, sent time.Time) {
	si.look(node)
	if !sent.Before(si.newest[node]) {
		si.leased(b.node, b.session, sent)
		si.newest[node], si.sees[node] = sent, sent.Add(b.node.w.plan.lease(b.node.index)*99/200)
	}
}

// born is told that a supervisor begins: it knows of no answer yet.
func (si *sight) born(node string) {
	si.look(node)
	delete(si.newest, node)
	delete(si.sees, node)
}

func (si *sight) look(node string) {
	if !time.Now().Before(si.sees[node]) {
		si.blind[node] = time.Now()
	}
}

// mayOutlast tells whether a service's child may be alive though its session is no more: every other node that its breadcrumb
// lists could have promised, having seen no ensemble, so lately that the promise still binds it.
func (si *sight) mayOutlast(v *serviceView, p *proc) bool {
	session, crumb := election.SessionName(p.tree.session), v.crumb
	if v.overwritten.session == session {
		crumb = v.overwritten
	}
	if crumb.session != session || !crumb.failsafe.Binds() {
		return false
	}
	for _, m := range crumb.failsafe.Members {
		si.look(m.Node)
		if time.Since(si.blind[m.Node]) > crumb.promised*101/100 {
			return false
		}
	}
	return true
}

// beating is a supervisor's connection to ZooKeeper. What goes over it tells which heartbeats were answered, whatever the
// supervisor itself believes; that they were committed does not, since answers may come late or never.
type beating struct {
	greeted bool  // the first frame is the answer to it
	session int64 // which tells of it
	*gated
	node *node
	sent map[uint32]time.Time // heartbeats that were not answered yet; World.mu guards it
	rest []byte               // the beginning of an answer; its one reader's
}

// Write implements net.Conn. The client writes whole requests.
func (b *beating) Write(p []byte) (int, error) {
	path := election.NodesDir(root) + "/" + b.node.name
	const at = 16 // after the lengths of frame and path, the number, and the operation
	if len(p) >= at+len(path) && jute.Op(binary.BigEndian.Uint32(p[8:])) == jute.OpSetData && string(p[at:at+len(path)]) == path {
		b.node.w.mu.Lock()
		b.sent[binary.BigEndian.Uint32(p[4:])] = time.Now()
		b.node.w.mu.Unlock()
	}
	return b.gated.Write(p)
}

// Read implements net.Conn.
func (b *beating) Read(p []byte) (int, error) {
	n, err := b.gated.Read(p)
	b.rest = append(b.rest, p[:n]...)
	for len(b.rest) >= 4 {
		end := 4 + int(binary.BigEndian.Uint32(b.rest))
		if len(b.rest) < end {
			break
		}
		b.answer(b.rest[4:end])
		b.rest = append(b.rest[:0], b.rest[end:]...)
	}
	return n, err
}

// answer looks at one: its request's number, a transaction's, and an error's.
func (b *beating) answer(frame []byte) {
	if len(frame) < 16 {
		return
	}
	b.node.w.mu.Lock()
	defer b.node.w.mu.Unlock()
	if !b.greeted {
		b.greeted = true
		var hello jute.ConnectResponse
		if jute.Unmarshal(frame, &hello) == nil {
			if hello.SessionID == 0 {
				b.node.w.check.tally.heard[b.node.name] = true
			}
			b.node.w.check.sight.greeted(b.node.name, hello.SessionID)
			b.session = hello.SessionID
		}
		return
	}
	number := binary.BigEndian.Uint32(frame)
	if sent, ok := b.sent[number]; ok && binary.BigEndian.Uint32(frame[12:]) == 0 {
		b.node.w.check.sight.answered(b.node.name, b, sent)
	}
	delete(b.sent, number)
}
