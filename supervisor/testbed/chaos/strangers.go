package main

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/election"
	"understudy/fencing/agent"
	"understudy/supervisor/testbed/chaos/history"
	"understudy/supervisor/testbed/kit"
)

// strangers come to each agent and to ZooKeeper, and know everything but the keys. Nothing may come of it.
func strangers(w *world, s *struck) func() {
	enough := make(chan struct{})
	visit := func(visitor func(w *world, dice *rand.Rand, enough <-chan struct{})) {
		dice := rand.New(rand.NewPCG(s.dice.Uint64(), 2))
		w.tasks.Go(func() { visitor(w, dice, enough) })
	}
	for _, n := range w.fleet.nodes {
		visit(func(w *world, dice *rand.Rand, enough <-chan struct{}) { w.strangers.besiege(n, dice, enough) })
	}
	visit(trespass)
	s.Target = "everywhere"
	return func() { close(enough) } // who is at it ends within a second or two
}

// visitEvery bounds what it costs: how much garbage agents bear is measured elsewhere.
const visitEvery = 20 * time.Millisecond

// meddlers ask what they have no right to.
type meddlers struct{ *world }

// besiege sends strangers to one node's agent.
func (st *meddlers) besiege(n *node, dice *rand.Rand, enough <-chan struct{}) {
	addr := net.JoinHostPort(n.host.Addr, agentPort)
	again := time.NewTicker(visitEvery)
	defer again.Stop()
	for {
		select {
		case <-enough:
			return
		case <-st.tasks.over:
			return
		case <-again.C:
		}
		who := st.someone(dice)
		purpose, question := st.question(n, dice)
		if far := who.visit(addr, purpose, question); far > nowhere {
			st.visited(far == answered || far == greeted && !who.inside, fmt.Sprintf("the agent on %s let in somebody with %s", n.name, who.who))
		}
	}
}

func (st *meddlers) visited(wrong bool, text string) {
	st.record.count(func(c *history.Counts) { c.Strangers++ })
	if wrong {
		st.mu.Lock()
		defer st.mu.Unlock()
		st.record.wrongly("stranger", text)
	}
}

// someone is a stranger of some kind. Who has stolen one of two keys is one, too.
func (st *meddlers) someone(dice *rand.Rand) stranger {
	st.mu.Lock()
	k := st.secrets.keys
	st.mu.Unlock()
	s := stranger{who: "nothing", inside: !st.secrets.means.certificates}
	if st.secrets.means.certificates && dice.IntN(4) > 0 {
		s.who, s.dress = "no certificate", &tls.Config{InsecureSkipVerify: true} //nolint:gosec // he does not care
		switch roll := dice.IntN(4); {
		case roll == 0:
			s.who, s.dress.Certificates = "another authority's certificate", []tls.Certificate{st.pair(st.secrets.others.File("a-both"))}
		case roll == 1 && k.formerAuthority != nil:
			s.who, s.dress.Certificates = "a former authority's certificate", []tls.Certificate{st.pair(k.formerAuthority.File("a-both"))}
		case roll == 2 && st.secrets.means.secret:
			s.who, s.inside, s.dress.Certificates = "a stolen certificate", true, []tls.Certificate{st.pair(st.fleet.nodes[0].keys.file(ownFile))}
		}
	}
	s.secret = []byte(newSecret())
	switch roll := dice.IntN(3); {
	case roll == 0 && k.formerSecret != "":
		s.who, s.secret = s.who+" and a former secret", []byte(k.formerSecret)
	case roll == 1 && st.secrets.means.secret:
		s.who, s.secret = s.who+" and a stolen secret", []byte(k.secret)
		if s.inside {
			s.who, s.taped = s.who+", used with a record", make([]byte, nonceSize)
		}
	}
	return s
}

// pair reads a certificate and its key. If they are being changed it is empty: he shows none then.
func (st *meddlers) pair(file string) tls.Certificate {
	p, _ := tls.LoadX509KeyPair(file, file)
	return p
}

// question is one about what runs, so well made that only the seal is wrong, or no question at all.
func (st *meddlers) question(n *node, dice *rand.Rand) (purpose string, question []byte) {
	switch dice.IntN(4) {
	case 0:
		garbage := make([]byte, dice.IntN(300))
		for i := range garbage {
			garbage[i] = byte(dice.Uint32())
		}
		return "", garbage
	case 1:
		return "", nil // he holds the line
	}
	service := services[dice.IntN(len(services))].name
	data, err := within(sec/2, func() ([]byte, error) {
		data, _, err := st.look.Conn().Get(st.look.Path("services", service, "ActiveBreadCrumb"))
		return data, err
	})
	c := election.BreadCrumb{Node: n.name, Token: 1}
	if err == nil {
		if read, err := election.ReadBreadCrumb(data); err == nil {
			c = read
		}
	}
	nonce, by := make([]byte, nonceSize), st.fleet.nodes[0].name
	var asked any = agent.Question{
		Service: service, Token: c.Token, Node: c.Node, Machine: c.Machine, Boot: c.Boot, Tree: c.Tree, By: by, ByToken: c.Token + 1<<32, Nonce: nonce,
	}
	if purpose = asDeath; dice.IntN(3) == 0 {
		purpose, asked = asPromise, agent.PromiseRequest{Service: service, Token: c.Token, By: by, Of: n.name, Machine: c.Machine, For: time.Minute, Nonce: nonce}
	}
	question, err = json.Marshal(asked)
	st.must(err)
	return purpose, question
}

// trespass has a client try everything at ZooKeeper: to delete the lock, to forge the breadcrumb, to pause.
func trespass(w *world, dice *rand.Rand, enough <-chan struct{}) {
	conn, _, err := zk.Connect(w.stage.Servers, session, zk.WithLogger(silence{}), zk.WithLogInfo(false))
	if err != nil {
		return // only for servers that are none
	}
	w.mu.Lock()
	shown := []string{"", "owner:" + newSecret(), w.secrets.keys.formerZK}[dice.IntN(3)]
	w.mu.Unlock()
	go func() { // what waits for an answer ends then
		select {
		case <-enough:
		case <-w.tasks.over:
		}
		conn.Close()
	}()
	if shown != "" && conn.AddAuth("digest", []byte(shown)) != nil {
		return
	}
	for {
		path := w.strangers.somewhere(dice)
		for what, err := range kit.Trespass(conn, path) {
			if err == nil || errors.Is(err, zk.ErrNoAuth) { // else it was not there, or he was not heard
				w.strangers.visited(err == nil, "a stranger could "+what+" "+path)
			}
		}
		select {
		case <-enough:
			return
		case <-w.tasks.over:
			return
		case <-time.After(visitEvery):
		}
	}
}

// somewhere is a znode that matters.
func (st *meddlers) somewhere(dice *rand.Rand) string {
	service := services[dice.IntN(len(services))].name
	n := st.fleet.nodes[dice.IntN(len(st.fleet.nodes))].name
	all := [][]string{
		{}, {"nodes", n}, {"services", service, "members", n},
		{"services", service, "ActiveStandbyElectorLock"}, {"services", service, "ActiveBreadCrumb"}, {"services", service, "control"},
	}
	return st.look.Path(all[dice.IntN(len(all))]...)
}

// silence is a client's log that nobody needs.
type silence struct{}

func (silence) Printf(string, ...any) {}
