package election

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"understudy/supervisor/printable"
)

// Members are the znodes in which the candidates of a service describe themselves.
type Members struct {
	s         *Session
	dir       string
	announced bool // ours is there
}

// Announce writes our own. It replaces one of a previous session of this node: the node's name is ours, nodes/<node> says so.
func (m *Members) Announce(ctx context.Context, member Member) error {
	ctx = InTurn(ctx)
	me := m.s.cfg.Node
	member.Node, member.Host, member.Machine = me.Node, me.Host, me.Machine
	path := m.dir + "/" + me.Node
	if m.announced {
		err := m.s.set(ctx, path, encode(member), -1)
		if err == nil || !errors.Is(err, zk.ErrNoNode) {
			return wrap("announce", err)
		}
		m.announced = false // deleted by hand
	}
	err := m.s.own(ctx, path, encode(member))
	m.announced = err == nil
	return wrap("announce", err)
}

// Rivaled reports whether another candidate could take the lock, as far as its own word does not deny that.
func (m *Members) Rivaled(ctx context.Context) (bool, error) {
	names, err := m.s.children(ctx, m.dir)
	for _, name := range names {
		if name == m.s.cfg.Node.Node {
			continue
		}
		v, err := m.s.get(ctx, m.dir+"/"+name)
		if err != nil {
			return false, wrap("read a member", err)
		}
		said, _ := decode[Member](v.data)
		if v.exists && said.Role != RoleFailed && said.Health != HealthUnfit && said.Health != HealthFailed {
			return true, nil
		}
	}
	return false, wrap("read the members", err)
}

// Watch reports the service's other candidates, and each change of them, until ctx or the session ends.
func (m *Members) Watch(ctx context.Context, tell func([]Peer)) error {
	ctx = InTurn(ctx)
	for again := (pacing{}); ; {
		peers, changed, err := m.peers(ctx)
		if err == nil {
			tell(peers)
			err = m.s.await(ctx, changed)
		} else if unknown(err) {
			err = again.wait(ctx, m.s.client, err)
		}
		if err != nil {
			return err
		}
	}
}

func (m *Members) peers(ctx context.Context) (peers []Peer, changed <-chan zk.Event, err error) {
	names, changed, err := m.s.watchChildren(ctx, m.dir)
	if err != nil {
		return nil, nil, wrap("read the members", err)
	}
	slices.Sort(names)
	for _, name := range names {
		if name == m.s.cfg.Node.Node {
			continue
		}
		v, err := m.s.get(ctx, m.dir+"/"+name)
		if err != nil {
			return nil, nil, wrap("read a member", err)
		}
		if !v.exists {
			continue // the watch reports that
		}
		said, err := decode[Member](v.data)
		if err != nil || said.Machine != "" && !printable.IsName(said.Machine) || said.Agent != "" && !printable.IsAddress(said.Agent) {
			said = Member{} // nobody can ask it for a promise
		}
		peers = append(peers, Peer{Node: name, Machine: said.Machine, Agent: said.Agent})
	}
	return peers, changed, nil
}
