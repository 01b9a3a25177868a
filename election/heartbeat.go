package election

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
)

const (
	slowShare        = 12 // an answer that takes a larger part of the lease than that is worth a line
	tripsOfATakeover = 15 // round trips in a row from a lock that comes free to a program that runs
	mostBeats        = 24 // heartbeats under way at once: as many as a lease can use
)

// pulse is the heartbeats of a session: writes to nodes/<node>, which nobody watches. One a supervisor, whatever the number of services.
//
// They are sent whether or not the ones before are answered, four times as often then, and each extends the lease from its own sending: a
// server that takes a third of a lease for a write, as one with a slow disk does, costs nobody a lease.
type pulse struct {
	s        *Session
	path     string
	newest   time.Duration   // when the newest was sent
	in       <-chan struct{} // its connection
	underWay []heartbeat     // the oldest first
	broken   bool            // one has failed in this connection
	told     bool            // that answers are slow
}

// heartbeat is one that is under way.
type heartbeat struct {
	sent  time.Duration
	in    <-chan struct{} // the connection
	reply chan beatReply
}

type beatReply struct {
	stat *zk.Stat
	err  error
	in   <-chan struct{} // the connection by then
}

// beat sends heartbeats until ctx or the session ends.
func (s *Session) beat(ctx context.Context) {
	p := pulse{s: s, path: NodesDir(s.cfg.Root) + "/" + s.cfg.Node.Node}
	every := beatEvery(s.LeaseLength())
	tick := time.NewTicker(every / 4)
	defer tick.Stop()
	looking, enough := context.WithCancel(ctx)
	defer enough()
	better := make(chan string, 1) // where a session is granted while the oldest is not answered; "": nowhere
	looks, since := false, time.Duration(0)
	for {
		resumed := s.Resumed()
		// SetBacks waits for the first one of each connection, which may break again and again.
		if resumed != p.in && (!p.broken || s.cfg.Now()-p.newest >= every/8) {
			p.broken = false
			p.send(ctx, resumed)
		}
		select {
		case r := <-p.oldest():
			if err := p.answered(r); err != nil {
				s.Stop(err)
				return
			}
			continue
		case <-tick.C:
		case <-resumed:
			continue
		case server := <-better:
			looks = false
			if server != "" && len(p.oldest()) == 0 && p.unansweredSince() < since && s.Resumed() == p.in {
				s.dialer.moveTo(server)
			}
			continue
		case <-s.Ended():
			return
		case <-ctx.Done():
			return
		}
		now := s.cfg.Now()
		if s.dialer.server() == "" {
			continue // what is sent without a connection is of use to nobody, and would wait for one
		}
		if !looks && now-p.unansweredSince() >= every && now-since >= 3*every {
			looks, since = true, now
			go func() { better <- s.granting(looking) }()
		}
		if len(p.underWay) == 0 && now-p.newest >= every*7/8 || len(p.underWay) > 0 && len(p.underWay) < mostBeats && !p.broken {
			p.send(ctx, resumed)
		}
	}
}

// send sends one.
func (p *pulse) send(ctx context.Context, in <-chan struct{}) {
	s := p.s
	h := heartbeat{sent: s.cfg.Now(), in: in, reply: make(chan beatReply, 1)}
	p.newest, p.in, p.underWay = h.sent, in, append(p.underWay, h)
	data := s.Self.data()
	go func() {
		stat, err := within(ctx, s.client, s.LeaseLength(), func() (*zk.Stat, error) { return s.conn.Set(p.path, data, -1) })
		h.reply <- beatReply{stat, err, s.Resumed()}
	}()
}

// oldest has the answer to the oldest that is under way; nil: none is.
func (p *pulse) oldest() chan beatReply {
	if len(p.underWay) == 0 {
		return nil
	}
	return p.underWay[0].reply
}

// unansweredSince is when the oldest was sent that is under way in the present connection.
func (p *pulse) unansweredSince() time.Duration {
	for _, h := range p.underWay {
		if h.in == p.in {
			return h.sent
		}
	}
	return p.s.cfg.Now()
}

// answered takes the answer to the oldest. An error says that no heartbeat counts any more.
func (p *pulse) answered(r beatReply) error {
	s, h := p.s, p.underWay[0]
	p.underWay = p.underWay[1:]
	switch {
	case r.err == nil && r.stat.Czxid != s.Lease.rests(), errors.Is(r.err, zk.ErrNoNode):
		s.log.Warn("somebody else deleted the znode of this supervisor, which carries its heartbeats: the session ends", "path", p.path)
		return ErrBeatGone // P3: no write to another znode extends the lease
	case r.err != nil:
		p.broken = h.in == p.in
		return nil
	}
	p.broken = false
	s.extend(h.sent)
	if r.in == h.in { // else it may be of the previous connection
		s.rollbacks.acked(*r.stat, h.in)
	}
	took := s.cfg.Now() - h.sent
	slow := took > s.LeaseLength()/slowShare
	if slow && !p.told {
		p.told = true
		s.log.Warn("ZooKeeper answers slowly, so takeovers take longer",
			"round_trip", took.Round(time.Millisecond), "takeover", fmt.Sprint("up to ", takeover(took)))
	}
	if !slow {
		took = 0
	}
	s.Self.saySlow(took)
	return nil
}

// takeover is how long one takes where a write takes so long.
func takeover(write time.Duration) time.Duration {
	return (tripsOfATakeover * write).Round(100 * time.Millisecond)
}

// slowness warns of that.
func slowness(write time.Duration) string {
	return fmt.Sprintf("ZooKeeper takes %v a write, so a takeover takes up to %v: look at the load and the disks (fsync) of its servers",
		write, takeover(write))
}

// unacknowledged says why the lease ends.
func (s *Session) unacknowledged() error {
	if server := s.dialer.server(); server != "" {
		return fmt.Errorf("%s is connected, and has acknowledged no write for %v: look at the network, its load and its disk (fsync)",
			server, (s.cfg.Now() - s.Acked()).Round(100*time.Millisecond))
	}
	return s.dialer.hosts.trouble()
}
