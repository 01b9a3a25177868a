package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/election"
	"understudy/fencing"
	"understudy/fencing/agent"
	"understudy/supervisor/testbed/keytest"
	"understudy/supervisor/testbed/kit"
)

// changeSecret is the three rounds: both are good, the new one is used, the former is good for nothing.
func changeSecret(w *world, dice *rand.Rand) (all []step) {
	was, is := w.secrets.keys.secret, newSecret()
	for _, text := range []string{lines(was, is), lines(is, was), lines(is)} {
		all = append(all, w.secrets.round(dice, func(n *node) error { return n.keys.put(secretFile, text) })...)
	}
	return append(all, w.secrets.done(func(k *keys) { k.secret, k.formerSecret = is, was }))
}

// renewCertificates gives all nodes certificates of a new authority, and keys: first they believe it, too, at last nobody else.
func renewCertificates(w *world, dice *rand.Rand) (all []step) {
	was, is := w.secrets.keys.authority, keytest.New(w.Program)
	signed := map[*node]string{}
	for _, n := range w.fleet.nodes {
		signed[n] = w.secrets.signed(is, n.host)
	}
	both, alone := w.secrets.text(was, "ca")+w.secrets.text(is, "ca"), w.secrets.text(is, "ca")
	for _, put := range []func(n *node) error{
		func(n *node) error { return n.keys.put(caFile, both) },
		func(n *node) error { return n.keys.put(ownFile, signed[n]) },
		func(n *node) error { return n.keys.put(caFile, alone) },
	} {
		all = append(all, w.secrets.round(dice, put)...)
	}
	return append(all, w.secrets.done(func(k *keys) { k.authority, k.formerAuthority = is, was }))
}

// changeCredentials shows ZooKeeper both, gives all to both, shows the new ones alone, and gives all to them.
func changeCredentials(w *world, dice *rand.Rand) (all []step) {
	was, is := w.secrets.keys.zk, newCredentials()
	all = append(all, w.secrets.introduced(is))
	for _, secrets := range [][]string{{was, is}, {is}} {
		text, since := lines(secrets...), map[*node]time.Time{}
		all = append(all, once(func() error { return w.desk.keys.put(zkFile, text) }))
		all = append(all, everywhere(w, dice, func(n *node) error { since[n] = time.Now(); return n.keys.put(zkFile, text) })...)
		all = append(all, w.secrets.shown(since, secrets), w.secrets.repaired())
	}
	return append(all, w.secrets.done(func(k *keys) { k.zk, k.formerZK = is, was }))
}

// introduced shows ZooKeeper more credentials of our own.
func (se *secrets) introduced(credentials string) step {
	var done chan error
	return func() string {
		if done == nil {
			done = make(chan error, 1)
			go func() { done <- se.look.Conn().AddAuth("digest", []byte(credentials)) }() // without a quorum nobody answers
		}
		select {
		case err := <-done:
			if done = nil; err == nil {
				return ""
			}
		default:
		}
		return "ZooKeeper's answer"
	}
}

// nobody is no service: of its child nothing is known anywhere.
const nobody = "nobody"

// trust waits until each node's agent has answered a question that was made with each other node's keys. The agent of a node
// that is down is not asked.
func (se *secrets) trust() step {
	type pair struct{ from, to *node }
	believed := map[pair]bool{}
	return func() string {
		for _, to := range se.fleet.nodes {
			se.mu.Lock()
			up := !to.off && !to.down && to.sup.Running()
			se.mu.Unlock()
			for _, from := range se.fleet.nodes {
				if p := (pair{from, to}); up && from != to && !believed[p] {
					if err := se.ask(from, to); !errors.Is(err, fencing.ErrNotDead) {
						return fmt.Sprintf("%s does not believe %s: %v", to.name, from.name, err)
					}
					believed[p] = true
				}
			}
		}
		return ""
	}
}

// ask asks one node's agent with the keys of another. An answer that can be believed says that nothing is known.
func (se *secrets) ask(from, to *node) error {
	ctx, cancel := context.WithTimeout(context.Background(), sec)
	defer cancel()
	return agent.Method{Keys: se.means.files(from.keys).Keys(nil)}.Fence(ctx, fencing.Target{
		Service: nobody, Token: 1, Node: to.name, Machine: nobody, Boot: nobody,
		Address: net.JoinHostPort(to.host.Addr, agentPort), By: fencing.Claimant{Node: from.name, Token: 2},
	})
}

// shown waits until every supervisor shows the credentials that its file has held since a moment: it says so in its log, or has
// registered with them. One that does not run will read the file.
func (se *secrets) shown(since map[*node]time.Time, secrets []string) step {
	auth := election.Auth{Scheme: "digest"}
	for _, s := range secrets {
		auth.Secrets = append(auth.Secrets, []byte(s))
	}
	return func() string {
		for _, n := range se.fleet.nodes {
			se.mu.Lock()
			sup, up := n.sup, !n.off && n.sup.Running()
			se.mu.Unlock()
			if up && !saidSince(sup.Log(), since[n], "sending changed credentials") && !se.registered(n, auth.ACL()) {
				return n.name + " does not show the changed ones"
			}
		}
		return ""
	}
}

// registered tells whether a node's znode belongs to certain credentials, and to no others.
func (se *secrets) registered(n *node, want []zk.ACL) bool {
	acl, err := within(2*sec, func() ([]zk.ACL, error) {
		acl, _, err := se.look.Conn().GetACL(se.look.Path("nodes", n.name))
		return acl, err
	})
	return err == nil && slices.Equal(election.Sorted(acl), want)
}

// repaired has an operator repair the access lists, until nothing is refused.
func (se *secrets) repaired() step {
	var command *kit.Supervisor
	return func() string {
		if command == nil {
			command = se.desk.host.Understudy(se.world, "check", "--repair-acl", "--config", se.desk.file)
		}
		if command.Running() {
			return "the access lists"
		}
		code := command.ExitCode(se.world, sec)
		if command = nil; code != 0 {
			return fmt.Sprintf("the access lists cannot be repaired: exit %d", code)
		}
		return ""
	}
}
