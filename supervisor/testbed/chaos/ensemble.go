package main

import (
	"context"
	"math/rand/v2"
	"time"

	"understudy/supervisor/testbed/chaos/history"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/tick"
)

// server is one of ZooKeeper's.
type server struct {
	index int
	host  *kit.Host
	harm  int
	cuts  int
}

// ensemble is ZooKeeper's servers. World.mu guards it.
type ensemble struct {
	*world
	servers []*server
	granted int  // which of grants servers grant from their next starts on
	serving bool // false from a healing until all servers serve, which takes them as long as it takes
}

func (en *ensemble) build() {
	for i, h := range en.stage.Hosts {
		en.servers = append(en.servers, &server{index: i, host: h})
	}
	en.granted = len(grants) - 1
}

// grants are ticks of servers, of which twenty are the longest session. From the longest grant to the shortest it is more than 7/12: what
// is granted less, and not read, is not promised to be survived.
var grants = []time.Duration{130 * time.Millisecond, 160 * time.Millisecond, tickTime}

// grant draws another of grants, for the next starts of all servers.
func (en *ensemble) grant(dice *rand.Rand) time.Duration {
	en.granted = (en.granted + 1 + dice.IntN(len(grants)-1)) % len(grants)
	return grants[en.granted]
}

// seat is the server that leads, or some follower; nil when none serves.
func (en *ensemble) seat(s *struck, leader bool) *server {
	at := en.stage.ZK.Leader()
	if at < 0 {
		return nil
	}
	if !leader {
		at = (at + 1 + s.dice.IntN(len(en.servers)-1)) % len(en.servers)
	}
	return en.servers[at]
}

// heal ends the faults of all servers.
func (en *ensemble) heal() {
	en.serving = false
	for _, z := range en.servers {
		z.harm, z.cuts = 0, 0
		z.host.Heal(en.world)
		if en.stage.ZK.PID(z.index) == 0 {
			en.must(en.stage.ZK.StartServer(z.index))
		}
	}
}

// restart restarts a server, unless it is down, and waits until it serves, but not for ever: others may be out of order too.
func (en *ensemble) restart(z *server, enough <-chan struct{}) bool {
	en.mu.Lock()
	select {
	case <-enough:
		en.mu.Unlock()
		return false
	default:
	}
	if en.stage.ZK.PID(z.index) != 0 {
		en.must(en.stage.ZK.Kill(z.index)) // one that is frozen would not stop
		en.must(en.stage.ZK.StartServer(z.index))
	}
	en.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	ready := make(chan struct{})
	go func() {
		defer close(ready)
		_ = en.stage.ZK.WaitReady(ctx)
	}()
	select {
	case <-ready:
		return true
	case <-enough:
	case <-en.tasks.over:
	}
	return false
}

// serve waits until all servers serve again. How long they take for that is no matter of Understudy's.
func (en *ensemble) serve() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	for {
		if err := en.stage.ZK.WaitReady(ctx); err != nil {
			return err
		}
		if en.writable(wedged) {
			break
		}
		en.say("%s    ZooKeeper has a leader and takes no writes: its servers are restarted", en.record.clock(tick.Now()))
		for i := range en.servers {
			if err := en.stage.ZK.Restart(i); err != nil {
				return err
			}
		}
		en.record.count(func(c *history.Counts) { c.Wedged++ })
	}
	en.mu.Lock()
	defer en.mu.Unlock()
	en.serving = true
	en.record.mark()
	return nil
}

// wedged is how long an ensemble whose network is whole may take no writes, before an operator would restart it. ZooKeeper
// 3.8.0 does that for ever now and then, when its leader was not heard for about as long as its followers wait.
const wedged = 20 * time.Second

// writable tells whether ZooKeeper acknowledges a write within a limit.
func (en *ensemble) writable(limit time.Duration) bool {
	end := time.After(limit)
	for {
		acked := make(chan error, 1)
		go func() {
			_, err := en.look.Conn().Set("/", nil, -1)
			acked <- err
		}()
		select {
		case err := <-acked:
			if err == nil {
				return true
			}
			time.Sleep(20 * time.Millisecond) // the client has no connection
		case <-end:
			return false
		}
	}
}
