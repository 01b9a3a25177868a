package sim

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"understudy/supervisor/child/box"
	"understudy/supervisor/witness"
)

const (
	leftToSupervisor = 100 * time.Millisecond // to accept what has come
	longestAnswer    = 12 * time.Second
)

// held tells whether somebody has the listener: the supervisor that opened it, or a guardian of it. World.mu is held.
func (e *ear) held() bool {
	if e == nil {
		return false
	}
	e.mu.Lock()
	over := e.over
	e.mu.Unlock()
	return !over && e.inc.alive() || len(e.guardians()) > 0
}

// guardians is those to whom the listener was lent. World.mu is held.
func (e *ear) guardians() []*guardian {
	return slices.DeleteFunc(e.inc.node.host.guardians(), func(g *guardian) bool { return g.of.inc != e.inc || !g.alive() })
}

// relieve has a guardian take a connection that the supervisor did not accept in time. World.mu is held.
func (e *ear) relieve(c *conn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	i := slices.Index(e.waiting, c)
	if i < 0 {
		return
	}
	w, all := e.inc.node.w, e.guardians()
	if n := slices.IndexFunc(all, func(g *guardian) bool { return g.running() }); n >= 0 {
		e.waiting = slices.Delete(e.waiting, i, i+1)
		all[n].answer(c)
		return
	}
	if len(all) == 0 && (e.over || !e.inc.alive()) {
		e.waiting = slices.Delete(e.waiting, i, i+1)
		c.shut(true)
		return
	}
	w.after(leftToSupervisor, func() { e.relieve(c) })
}

// answer holds a conversation beside the guardian's loop, as the real one does. World.mu is held.
func (g *guardian) answer(c *conn) {
	if g.proxy.desk == nil {
		host := box.Host{Machine: g.host.machine, Boot: g.host.boot(), PidNS: 1}
		g.proxy.desk = witness.Proxy(witness.Prover{Node: g.node.name, Host: host, End: g.killTree, Look: g.node.host.outlasted, Owed: g.node.host.owed}, root, agentKeys)
	}
	g.proxy.heard = append(g.proxy.heard, c)
	g.w.say("%s: guardian %d answers a question", g.node.name, g.index+1)
	g.w.wait.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), longestAnswer)
		defer cancel()
		g.proxy.desk.Answer(ctx, &gated{conn: c, gate: g.gate})
	})
}

func (g *guardian) killTree(ctx context.Context, id json.RawMessage) error {
	return g.host.killTree(ctx, g.gate, id)
}
