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
	"understudy/supervisor/e2e/chaos/history"
	"understudy/supervisor/e2e/kit"
	"understudy/supervisor/e2e/kit/tick"
)

// strangers come to each agent and to ZooKeeper, and know everything but the keys. Nothing may come of it.
func strangers(w *world, s *struck) func() {
	enough := make(chan struct{})
	visit := func(visitor func(w *world, dice *rand.Rand, enough <-chan struct{})) {
		dice := rand.New(rand.NewPCG(s.dice.Uint64(), 2))
		w.tasks.Go(func() { visitor(w, dice, enough) })
	}
	for _, n := range w.nodes {
		visit(func(w *world, dice *rand.Rand, enough <-chan struct{}) { w.besiege(n, dice, enough) })
	}
	visit(trespass)
	s.Target = "everywhere"
	return func() { close(enough) } // who is at it ends within a second or two
}

// visitEvery bounds what it costs: how much garbage agents bear is measured elsewhere.
const visitEvery = 20 * time.Millisecond

// besiege sends strangers to one node's agent.
func (w *world) besiege(n *node, dice *rand.Rand, enough <-chan struct{}) {
	addr := net.JoinHostPort(n.host.Addr, agentPort)
	again := time.NewTicker(visitEvery)
	defer again.Stop()
	for {
		select {
		case <-enough:
			return
		case <-w.tasks.over:
			return
		case <-again.C:
		}
		who := w.someone(dice)
		purpose, question := w.question(n, dice)
		if far := who.visit(addr, purpose, question); far > nowhere {
			w.visited(far == answered || far == greeted && !who.inside, fmt.Sprintf("the agent on %s let in somebody with %s", n.name, who.who))
		}
	}
}

func (w *world) visited(wrong bool, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.past.Strangers++; wrong {
		w.wrong = append(w.wrong, history.Violation{What: "stranger", At: tick.Now(), Text: text})
	}
}

// someone is a stranger of some kind. Who has stolen one of two keys is one, too.
func (w *world) someone(dice *rand.Rand) stranger {
	w.mu.Lock()
	k := w.keys
	w.mu.Unlock()
	s := stranger{who: "nothing", inside: !w.means.certificates}
	if w.means.certificates && dice.IntN(4) > 0 {
		s.who, s.dress = "no certificate", &tls.Config{InsecureSkipVerify: true} //nolint:gosec // he does not care
		switch roll := dice.IntN(4); {
		case roll == 0:
			s.who, s.dress.Certificates = "another authority's certificate", []tls.Certificate{w.pair(w.others.File("a-both"))}
		case roll == 1 && k.formerAuthority != nil:
			s.who, s.dress.Certificates = "a former authority's certificate", []tls.Certificate{w.pair(k.formerAuthority.File("a-both"))}
		case roll == 2 && w.means.secret:
			s.who, s.inside, s.dress.Certificates = "a stolen certificate", true, []tls.Certificate{w.pair(w.nodes[0].keys.file(ownFile))}
		}
	}
	s.secret = []byte(newSecret())
	switch roll := dice.IntN(3); {
	case roll == 0 && k.formerSecret != "":
		s.who, s.secret = s.who+" and a former secret", []byte(k.formerSecret)
	case roll == 1 && w.means.secret:
		s.who, s.secret = s.who+" and a stolen secret", []byte(k.secret)
		if s.inside {
			s.who, s.taped = s.who+", used with a record", make([]byte, nonceSize)
		}
	}
	return s
}

// pair reads a certificate and its key. If they are being changed it is empty: he shows none then.
func (w *world) pair(file string) tls.Certificate {
	p, _ := tls.LoadX509KeyPair(file, file)
	return p
}

// question is one about what runs, so well made that only the seal is wrong, or no question at all.
func (w *world) question(n *node, dice *rand.Rand) (purpose string, question []byte) {
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
		data, _, err := w.look.Conn().Get(w.look.Path("services", service, "ActiveBreadCrumb"))
		return data, err
	})
	c := election.BreadCrumb{Node: n.name, Token: 1}
	if err == nil {
		if read, err := election.ReadBreadCrumb(data); err == nil {
			c = read
		}
	}
	nonce, by := make([]byte, nonceSize), w.nodes[0].name
	var asked any = agent.Question{
		Service: service, Token: c.Token, Node: c.Node, Machine: c.Machine, Boot: c.Boot, Tree: c.Tree, By: by, ByToken: c.Token + 1<<32, Nonce: nonce,
	}
	if purpose = asDeath; dice.IntN(3) == 0 {
		purpose, asked = asPromise, agent.PromiseRequest{Service: service, Token: c.Token, By: by, Of: n.name, Machine: c.Machine, For: time.Minute, Nonce: nonce}
	}
	question, err = json.Marshal(asked)
	w.must(err)
	return purpose, question
}

// trespass has a client try everything at ZooKeeper: to delete the lock, to forge the breadcrumb, to pause.
func trespass(w *world, dice *rand.Rand, enough <-chan struct{}) {
	conn, _, err := zk.Connect(w.stage.Servers, session, zk.WithLogger(silence{}), zk.WithLogInfo(false))
	if err != nil {
		return // only for servers that are none
	}
	w.mu.Lock()
	shown := []string{"", "owner:" + newSecret(), w.keys.formerZK}[dice.IntN(3)]
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
		path := w.somewhere(dice)
		for what, err := range kit.Trespass(conn, path) {
			if err == nil || errors.Is(err, zk.ErrNoAuth) { // else it was not there, or he was not heard
				w.visited(err == nil, "a stranger could "+what+" "+path)
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
func (w *world) somewhere(dice *rand.Rand) string {
	service := services[dice.IntN(len(services))].name
	n := w.nodes[dice.IntN(len(w.nodes))].name
	all := [][]string{
		{}, {"nodes", n}, {"services", service, "members", n},
		{"services", service, "ActiveStandbyElectorLock"}, {"services", service, "ActiveBreadCrumb"}, {"services", service, "control"},
	}
	return w.look.Path(all[dice.IntN(len(all))]...)
}

// silence is a client's log that nobody needs.
type silence struct{}

func (silence) Printf(string, ...any) {}
