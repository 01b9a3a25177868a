package kit

import (
	"maps"
	"testing"
)

// Cable connects a host with the others.
type Cable struct {
	Addr string

	lab     *Lab
	ns      string // its network namespace; empty: the test's own
	port    string // its port at the bridge
	offline bool
	slow    bool
}

// Cut takes the host off the network: its cable is pulled.
func (c *Cable) Cut(tb testing.TB) {
	tb.Helper()
	c.link(tb, "down")
}

// CutFrom loses everything between the host and some addresses, in both directions and without a sound.
func (c *Cable) CutFrom(tb testing.TB, addrs ...string) {
	tb.Helper()
	c.lab.change(tb, func(drops map[pair]bool) {
		for _, addr := range addrs {
			drops[pair{c.Addr, addr}], drops[pair{addr, c.Addr}] = true, true
		}
	})
}

// Mute loses everything the host sends to some addresses; what they send still arrives.
func (c *Cable) Mute(tb testing.TB, addrs ...string) {
	tb.Helper()
	c.lab.change(tb, func(drops map[pair]bool) {
		for _, addr := range addrs {
			drops[pair{c.Addr, addr}] = true
		}
	})
}

// Deafen loses everything some addresses send to the host; what it sends still arrives.
func (c *Cable) Deafen(tb testing.TB, addrs ...string) {
	tb.Helper()
	c.lab.change(tb, func(drops map[pair]bool) {
		for _, addr := range addrs {
			drops[pair{addr, c.Addr}] = true
		}
	})
}

// Lose loses so many of a hundred packets from and to the host, each by chance.
func (c *Cable) Lose(tb testing.TB, percent int) {
	tb.Helper()
	c.lab.mu.Lock()
	defer c.lab.mu.Unlock()
	c.lab.losses[c.port] = percent
	if err := c.lab.rules(); err != nil {
		tb.Fatalf("change the network: %v", err)
	}
}

// Slow makes the host's line narrow in both directions, with a long queue before it: what is sent arrives late.
func (c *Cable) Slow(tb testing.TB, rate string) {
	tb.Helper()
	const queue = " root tbf burst 4kb latency 2000ms rate "
	err := script("tc qdisc replace dev "+c.port+queue+rate, "tc -n "+c.ns+" qdisc replace dev eth0"+queue+rate)
	if err != nil {
		tb.Fatalf("%s: %v", c.Addr, err)
	}
	c.slow = true
}

// Heal ends all faults of the host's network.
func (c *Cable) Heal(tb testing.TB) {
	tb.Helper()
	if c.offline {
		c.link(tb, "up")
	}
	if c.slow {
		if err := script("tc qdisc del dev "+c.port+" root", "tc -n "+c.ns+" qdisc del dev eth0 root"); err != nil {
			tb.Fatalf("%s: %v", c.Addr, err)
		}
		c.slow = false
	}
	c.lab.change(tb, func(drops map[pair]bool) {
		delete(c.lab.losses, c.port)
		maps.DeleteFunc(drops, func(p pair, _ bool) bool { return p.from == c.Addr || p.to == c.Addr })
	})
}

func (c *Cable) link(tb testing.TB, state string) {
	tb.Helper()
	if err := script("ip link set " + c.port + " " + state); err != nil {
		tb.Fatalf("%s: %v", c.Addr, err)
	}
	c.offline = state == "down"
}

func (l *Lab) change(tb testing.TB, change func(map[pair]bool)) {
	tb.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	change(l.drops)
	if err := l.rules(); err != nil {
		tb.Fatalf("change the network: %v", err)
	}
}
