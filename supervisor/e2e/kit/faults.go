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

// Heal ends all faults of the host's network.
func (h *Host) Heal(tb testing.TB) {
	tb.Helper()
	if h.offline {
		h.link(tb, "up")
	}
	h.lab.change(tb, func(drops map[pair]bool) {
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
