package control

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"understudy/election"
)

// The words for an operator who swears that a child is dead.

// refuse refuses the confirmation: the session lasts. It may outlast its supervisor, so the answer gives what happens next.
func (s facts) refuse(node, how string) error {
	trail := parseCrumb(s.crumb)
	beat := "no heartbeat of it is seen"
	if trail.writtenBy(s.node) {
		beat = "last heartbeat at " + time.UnixMilli(s.node.stat.Mtime).UTC().Format(time.RFC3339) + " by ZooKeeper's clock"
	}
	session := "a session timeout"
	if lease := time.Duration(max(trail.LeaseMs, s.supervisor().LeaseMs)) * time.Millisecond; lease > 0 {
		session = (2 * lease).String()
	}
	return fmt.Errorf("%w: %s %s (%s). Stop its supervisor instead. If its host is off, repeat this in %s, then see `understudy status`",
		ErrActive, node, how, beat, session)
}

// supervisor is the znode of the node's supervisor.
func (s facts) supervisor() (n election.Node) {
	_ = json.Unmarshal(s.node.data, &n) // an empty one counts, too
	return n
}

// connected tells whether a supervisor of the node is: a znode of no session, as a restored backup leaves it, says nothing of that.
func (s facts) connected() bool { return s.node.exists && s.node.stat.EphemeralOwner != 0 }

// serves tells whether the connected supervisor has the service in its config: otherwise it waits for nothing.
func (s facts) serves() bool {
	return s.connected() && s.member.exists && s.member.stat.EphemeralOwner == s.node.stat.EphemeralOwner
}

// sameMachine tells whether the supervisor that is connected can see the child that the breadcrumb is about.
func (s facts) sameMachine() bool {
	machine := parseCrumb(s.crumb).Machine
	return s.connected() && machine != "" && machine == s.supervisor().Machine
}

func alive(l election.Leftover) string {
	if l.Pid == 0 {
		return fmt.Sprintf("some of its processes are alive, according to %s", cmp.Or(l.By, "its record"))
	}
	return fmt.Sprintf("pid %d (%s), state %s, is alive, according to %s", l.Pid, l.Program, l.State, cmp.Or(l.By, "its record"))
}

// objections are the facts against a confirmation that is accepted all the same.
func (s facts) objections(node string) (all []string) {
	trail := parseCrumb(s.crumb)
	if trail.Leftover.Known {
		all = append(all, "its record said of its program: "+alive(trail.Leftover))
	}
	if len(trail.Left) > 0 {
		all = append(all, "its record said that what its oneshots did is not undone: "+strings.Join(trail.Left, ", "))
	}
	if len(trail.Survive) > 0 {
		all = append(all, "its record said that a boot of its host does not undo what its oneshots did: "+strings.Join(trail.Survive, ", "))
	}
	if trail.Failsafe.Binds() {
		all = append(all, fmt.Sprintf("it is failsafe: a program on %s may run without ZooKeeper, unless that node is off", node))
	}
	if s.connected() {
		all = append(all,
			fmt.Sprintf("a supervisor of %s is connected (host %s), so that host is not off", node, cmp.Or(s.supervisor().Host, "unknown")))
	}
	return all
}

// obstacles keep other nodes from starting though the confirmation is accepted. It leaves out what cannot be read.
func (o confirming) obstacles(ctx context.Context) (all []string) {
	p, service := o.p, o.p.Service
	if orders, err := o.read(ctx, p.Control()); err == nil && election.ParseControl(orders.data).Paused {
		all = append(all, fmt.Sprintf("%s is paused: no node starts it before `understudy resume %s`", service, service))
	}
	lock, err := o.read(ctx, p.Lock())
	if err != nil || !lock.exists {
		return all
	}
	var holder election.Lock
	_ = json.Unmarshal(lock.data, &holder)
	if lock.stat.EphemeralOwner == 0 {
		return append(all, fmt.Sprintf("the lock belongs to no session, and no node can take it: delete %s by hand", p.Lock()))
	}
	names, err := o.children(ctx, election.NodesDir(o.root))
	if err != nil {
		return all
	}
	for _, name := range names {
		if n, err := o.read(ctx, election.NodesDir(o.root)+"/"+name); err != nil ||
			n.exists && n.stat.EphemeralOwner == lock.stat.EphemeralOwner {
			return all
		}
	}
	return append(all, fmt.Sprintf("session %s holds the lock, of node %s, and no supervisor is connected in that session: no node starts "+
		"before ZooKeeper ends it; if it stays, `understudy status` gives the command that deletes the lock",
		election.SessionName(lock.stat.EphemeralOwner), cmp.Or(holder.Node, "unknown")))
}
