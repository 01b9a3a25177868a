package sim

import (
	"context"
	"net"
	"slices"
	"sync"
	"syscall"

	"understudy/fencing"
	"understudy/fencing/agent"
	"understudy/supervisor"
)

// agentsFrom is the number from which on the network knows supervisors' agents in place of servers, by their nodes.
const agentsFrom = 100

// agentKeys are those of all agents.
var agentKeys = agent.Shared([]byte("known to all nodes"))

// ear is where a supervisor listens for others that ask about a death.
type ear struct {
	inc  *incarnation
	bell chan struct{} // holds one when a connection has come
	shut chan struct{} // closed when the supervisor does not listen any more

	mu       sync.Mutex // guards the fields below
	waiting  []*conn    // that have come, and that nobody has taken
	accepted []*conn    // by the supervisor
	over     bool
}

// Accept implements net.Listener.
func (e *ear) Accept() (net.Conn, error) {
	for {
		select {
		case <-e.bell:
		case <-e.shut:
			return nil, net.ErrClosed
		}
		if !e.inc.pass() {
			return nil, errCrashed
		}
		if c := e.next(); c != nil {
			return &gated{conn: c, gate: e.inc.gate}, nil
		}
	}
}

func (e *ear) next() *conn {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.waiting) == 0 || e.over {
		return nil
	}
	c := e.waiting[0]
	e.waiting = e.waiting[1:]
	e.accepted = append(e.accepted, c)
	e.ring()
	return c
}

// ring tells the supervisor of what waits. The caller holds mu.
func (e *ear) ring() {
	if len(e.waiting) == 0 {
		return
	}
	select {
	case e.bell <- struct{}{}:
	default:
	}
}

// Close implements net.Listener.
func (e *ear) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.over {
		e.over = true
		close(e.shut)
	}
	return nil
}

// Addr implements net.Listener.
func (e *ear) Addr() net.Addr { return addr(e.inc.node.name) }

// take is told of a connection that has come.
func (e *ear) take(c *conn) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.waiting) >= 16 {
		return false
	}
	e.waiting = append(e.waiting, c)
	e.ring()
	return true
}

// held tells whether the supervisor that opened the listener has it still. World.mu is held.
func (e *ear) held() bool {
	if e == nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.over && e.inc.alive()
}

// sever ends the listening, and all conversations, of a process that is no more.
func (e *ear) sever(tell bool) {
	_ = e.Close()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range slices.Concat(e.accepted, e.waiting) {
		c.shut(tell)
	}
}

// agent is what a supervisor is told of asking and being asked.
func (i *incarnation) agent() *supervisor.Agent {
	if !i.node.w.plan.Agents {
		return nil
	}
	return &supervisor.Agent{Listen: i.node.name, Advertise: i.node.name, Keys: agentKeys, Open: i.listen, Dial: i.call}
}

// asks is the fencing step of asking an agent before anything else is tried.
func (i *incarnation) asks() fencing.Step {
	return fencing.Step{Method: agent.Method{Keys: agentKeys, Dial: i.call}, Timeout: i.node.w.plan.Timeout}
}

func (i *incarnation) listen(context.Context) (net.Listener, error) {
	if !i.pass() {
		return nil, errCrashed
	}
	e := &ear{inc: i, bell: make(chan struct{}, 1), shut: make(chan struct{})}
	w := i.node.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if !i.alive() {
		return nil, errCrashed
	}
	if i.node.ear.held() {
		return nil, syscall.EADDRINUSE
	}
	i.ear, i.node.ear = e, e
	return e, nil
}

// call connects to a node's agent. A host without power does not even refuse.
func (i *incarnation) call(ctx context.Context, node string) (net.Conn, error) {
	w := i.node.w
	n := w.nodes[w.indexOf(node)]
	w.mu.Lock()
	on := n.host.on
	w.mu.Unlock()
	if !on {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	return w.net.dial(ctx, i.node.host.index, agentsFrom+n.index, i.gate)
}

// knock brings a connection to a node's agent, if there is one.
func (w *world) knock(n *node, c net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n.liar != nil && n.host.on {
		n.liar.take(c)
		return true
	}
	return n.ear.held() && n.ear.take(c.(*conn))
}

// part cuts, or joins again, hosts that are not on the same side.
func (lf *linkFaults) part(side func(h *host) bool, sign int) {
	for _, h := range lf.hosts {
		for _, n := range lf.nodes {
			if side(h) != side(n.host) {
				lf.net.change(h.index, agentsFrom+n.index, func(l *link) {
					l.up.cut += sign
					l.down.cut += sign
				})
			}
		}
	}
}
