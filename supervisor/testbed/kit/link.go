package kit

import (
	"os/exec"
	"testing"

	"understudy/supervisor/testbed/must"
)

// SecondLink gives the host another device, over which it reaches some addresses even without its first one.
func (h *Host) SecondLink(tb testing.TB, addrs ...string) {
	tb.Helper()
	l, port := h.lab, h.port+"b"
	l.mu.Lock()
	l.hosts++
	own := l.address(10 + l.hosts)
	l.mu.Unlock()
	in := "ip -n " + h.ns + " "
	lines := []string{
		"ip link add " + port + " type veth peer name eth1 netns " + h.ns,
		"ip link set " + port + " master " + l.bridge + " up",
		in + "addr add " + own + "/32 dev eth1",
		in + "link set eth1 up",
	}
	for _, addr := range addrs {
		lines = append(lines, in+"route add "+addr+"/32 dev eth1 src "+own)
	}
	if err := script(lines...); err != nil {
		tb.Fatalf("give host %s another device: %v", h.Name, err)
	}
	// Else each device answers for the addresses of the other one.
	must.OK(tb, output(exec.Command("nsenter", "--net="+h.Network(), "sysctl", "-q", "-w", "net.ipv4.conf.all.arp_ignore=1", "net.ipv4.conf.all.arp_announce=2")))
}

// DeleteLink removes the host's first device.
func (c *Cable) DeleteLink(tb testing.TB) {
	tb.Helper()
	if err := script("ip link del " + c.port); err != nil {
		tb.Fatalf("%s: %v", c.Addr, err)
	}
}
