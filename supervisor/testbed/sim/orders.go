package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"understudy/election"
	"understudy/election/jute"
)

// operator is who gives orders, changes the config, and deletes things by hand.
type operator struct {
	*world
	rng      *rand.Rand
	settings map[string]*settings // by service; World.mu guards it
}

// byOperator has an operator send a request, in a session of its own, from a place whose network is fine. It tells whether a
// server has said that it is done.
func (o *operator) byOperator(op jute.Op, request jute.Record) bool {
	done, _ := o.sendAsOperator(op, request)
	return done
}

// sendAsOperator also tells in which sessions the request was sent and not answered: it may be carried out as long as they last.
func (o *operator) sendAsOperator(op jute.Op, request jute.Record) (done bool, unanswered []int64) {
	for n := range o.zk.servers {
		ours, theirs := o.net.local()
		o.serve(n, theirs)
		session, err := ask(ours, op, request)
		_ = ours.Close()
		if err == nil {
			return true, unanswered
		}
		var refused refusedError
		if errors.As(err, &refused) {
			return false, unanswered
		}
		if session != 0 {
			unanswered = append(unanswered, session)
		}
	}
	return false, unanswered
}

type refusedError struct{ code jute.Code }

func (e refusedError) Error() string { return fmt.Sprint("refused: ", e.code) }

func ask(c net.Conn, op jute.Op, request jute.Record) (session int64, err error) {
	_ = c.SetReadDeadline(time.Now().Add(time.Second))
	var refused error
	for n, records := range [][]jute.Record{
		{jute.ConnectRequest{Timeout: 4000, Password: make([]byte, 16)}},
		{jute.RequestHeader{Xid: 1, Op: op}, request},
		{jute.RequestHeader{Xid: 2, Op: jute.OpCloseSession}},
	} {
		if _, err := c.Write(jute.Frame(records...)); err != nil {
			return session, err
		}
		frame, err := jute.ReadFrame(c, 0)
		if err != nil {
			return session, fmt.Errorf("operator: %w", err)
		}
		if n == 0 {
			var greeting jute.ConnectResponse
			if err := jute.Unmarshal(frame, &greeting); err != nil {
				return 0, err
			}
			session = greeting.SessionID
		}
		if n == 1 {
			var h jute.ReplyHeader
			r := jute.NewReader(frame)
			r.Record(&h)
			if h.Code != jute.OK {
				refused = refusedError{h.Code}
			}
		}
	}
	return session, refused
}

// pauseService is an operator's order that nobody is to be promoted, or that nobody is to be active, and the one that ends it.
func (o *operator) pauseService(f Fault) (end func(), done bool) {
	name := o.plan.services()[f.N%o.plan.Services]
	if stops := f.N/64%2 == 1 && !o.plan.Calm; stops {
		return func() { o.order(name, false) }, o.stop(name)
	}
	done = o.order(name, true)
	return func() { o.order(name, false) }, done
}

// order pauses or resumes a service.
func (o *operator) order(service string, paused bool) bool {
	o.say("operator: %s is to be paused: %v", service, paused)
	return o.amend(service, -1, election.Control{Paused: paused, By: "operator"})
}

// stop has a service be active nowhere, until it is resumed.
func (o *operator) stop(service string) bool {
	o.say("operator: %s is to be stopped", service)
	return o.amend(service, -1, election.Control{Paused: true, Stopped: true, By: "operator"})
}

// orders are what a control znode says, and its version.
type orders struct {
	election.Control
	version int32
}

// amend writes what is wanted of a service.
func (o *operator) amend(service string, version int32, c election.Control) bool {
	data, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	return o.byOperator(jute.OpSetData, jute.SetData{Path: election.Paths{Root: root, Service: service}.Control(), Data: data, Version: version})
}

var orderNames = [...]string{"switchover to a node", "switchover to any", "restart", "reload"}

// giveOrder has an operator order something of the activation that is running, as the commands do; the command takes back
// what nobody has followed, unless it is killed before.
func (o *operator) giveOrder(f Fault) (end func(), done bool) {
	name := o.plan.services()[f.N%o.plan.Services]
	to := o.nodes[f.Node].name
	o.mu.Lock()
	v := o.check.services[name]
	now, token, from := v.orders, v.lock.token, ""
	for p := range v.living {
		if p.main {
			from = p.tree.node
		}
	}
	o.mu.Unlock()
	if from == "" || !v.lock.there {
		return nil, false
	}
	errand := election.Order{ID: fmt.Sprint(f.N, "-", time.Since(o.began)), Token: token, By: "operator"}
	switch f.Way % len(orderNames) {
	case 0, 1:
		now.Switchover = &election.Switchover{Order: errand, From: from, To: to, Force: f.N/16%2 == 1}
		if to == from || f.Way == 1 {
			now.Switchover.To = ""
		}
	case 2:
		now.Restart = &errand
	case 3:
		now.Reload = &errand
	}
	o.say("operator: %s, %s of %s, token %d", name, orderNames[f.Way%len(orderNames)], from, token)
	done = o.amend(name, now.version, now.Control)
	if f.N/64%4 == 0 {
		return nil, done
	}
	return func() { o.takeBack(name, errand.ID) }, done
}

// takeBack removes an order that nobody has followed.
func (o *operator) takeBack(service, id string) {
	o.mu.Lock()
	now := o.check.services[service].orders
	o.mu.Unlock()
	before := now.Control
	if s := now.Switchover; s != nil && s.ID == id {
		now.Switchover = nil
	}
	if e := now.Restart; e != nil && e.ID == id {
		now.Restart = nil
	}
	if e := now.Reload; e != nil && e.ID == id {
		now.Reload = nil
	}
	if now.Control != before {
		o.amend(service, now.version, now.Control)
	}
}

// resume ends the pauses that are in force: that an order which nobody acknowledged may have come through is an operator's to know.
func (o *operator) resume() {
	o.mu.Lock()
	var paused []string
	for _, s := range o.plan.services() {
		if o.course.quiet && o.check.services[s].paused {
			paused = append(paused, s)
		}
	}
	o.mu.Unlock()
	for _, s := range paused {
		o.order(s, false)
	}
}
