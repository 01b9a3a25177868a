package kit

import (
	"maps"
	"testing"
)

// Cut takes the host off the network: its cable is pulled.
func (h *Host) Cut(tb testing.TB) {
	tb.Helper()
	h.link(tb, "down")
}

// CutFrom loses everything between the host and some addresses, in both directions and without a sound.
func (h *Host) CutFrom(tb testing.TB, addrs ...string) {
	tb.Helper()
	h.lab.change(tb, func(drops map[pair]bool) {
		for _, addr := range addrs {
			drops[pair{h.Addr, addr}], drops[pair{addr, h.Addr}] = true, true
		}
	})
}

// Mute loses everything the host sends to some addresses; what they send still arrives.
func (h *Host) Mute(tb testing.TB, addrs ...string) {
	tb.Helper()
	h.lab.change(tb, func(drops map[pair]bool) {
		for _, addr := range addrs {
			drops[pair{h.Addr, addr}] = true
		}
	})
}

// Deafen loses everything some addresses send to the host; what it sends still arrives.
func (h *Host) Deafen(tb testing.TB, addrs ...string) {
	tb.Helper()
	h.lab.change(tb, func(drops map[pair]bool) {
		for _, addr := range addrs {
			drops[pair{addr, h.Addr}] = true
		}
	})
}

// Lose loses so many of a hundred packets from and to the host, each by chance.
func (h *Host) Lose(tb testing.TB, percent int) {
	tb.Helper()
	h.lab.mu.Lock()
	defer h.lab.mu.Unlock()
	h.lab.losses[h.Addr] = percent
	if err := h.lab.rules(); err != nil {
		tb.Fatalf("change the network: %v", err)
	}
}

// Slow makes the host's line narrow in both directions, with a long queue before it: what is sent arrives late.
func (h *Host) Slow(tb testing.TB, rate string) {
	tb.Helper()
	const queue = " root tbf burst 4kb latency 2000ms rate "
	err := script("tc qdisc replace dev "+h.port+queue+rate, "tc -n "+h.ns+" qdisc replace dev eth0"+queue+rate)
	if err != nil {
		tb.Fatalf("%s: %v", h.Name, err)
	}
	h.slow = true
}

// Heal ends all faults of the host's network.
func (h *Host) Heal(tb testing.TB) {
	tb.Helper()
	if h.offline {
		h.link(tb, "up")
	}
	if h.slow {
		if err := script("tc qdisc del dev "+h.port+" root", "tc -n "+h.ns+" qdisc del dev eth0 root"); err != nil {
			tb.Fatalf("%s: %v", h.Name, err)
		}
		h.slow = false
	}
	h.lab.change(tb, func(drops map[pair]bool) {
		delete(h.lab.losses, h.Addr)
		maps.DeleteFunc(drops, func(p pair, _ bool) bool { return p.from == h.Addr || p.to == h.Addr })
	})
}

func (h *Host) link(tb testing.TB, state string) {
	tb.Helper()
	if err := script("ip link set " + h.port + " " + state); err != nil {
		tb.Fatalf("%s: %v", h.Name, err)
	}
	h.offline = state == "down"
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
