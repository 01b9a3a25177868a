package probe

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/child/wire"
)

// Our own listener, and one of a later time, are no strangers; an older one of another unit is, but only where systemd has put it into one.
func TestWhoListensIsFoundBySocket(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0", "0.0.0.0:0"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Logf("%s: %v", address, err)
			continue
		}
		defer l.Close()
		at := l.Addr().(*net.TCPAddr).AddrPort()
		ask := netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
		if at.Addr().IsUnspecified() {
			ask = netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), at.Port())
		}
		sockets := listeners(ask)
		if len(sockets) != 1 || !holdsSocket(os.Getpid(), sockets) {
			t.Errorf("%s: %v", address, sockets)
		}
		if len(listeners(netip.AddrPortFrom(ask.Addr(), at.Port()+1))) > 0 {
			t.Errorf("%s: the next port has a listener, too", address)
		}
		if who := Stranger(ask.String(), wire.Now()+time.Hour); who != "" {
			t.Errorf("we are a stranger to ourselves: %s", who)
		}
		units := func(pid string) string {
			if pid == "self" {
				return "/system.slice/understudy.service"
			}
			return "/system.slice/nginx.service"
		}
		if who := otherListener(ask.String(), wire.Now()+time.Hour, nil, units); !strings.HasSuffix(who, fmt.Sprintf("(pid %d, nginx.service)", os.Getpid())) {
			t.Errorf("a process of another unit is %q", who)
		}
		if floating := netip.MustParseAddr("192.0.2.10"); at.Addr().IsUnspecified() {
			there := netip.AddrPortFrom(floating, at.Port()).String()
			if who := otherListener(there, wire.Now()+time.Hour, []netip.Addr{floating}, units); !strings.HasSuffix(who, "nginx.service)") {
				t.Errorf("once %s is set here, %q answers there", floating, who)
			}
			if who := otherListener(there, wire.Now()+time.Hour, nil, units); who != "" {
				t.Errorf("%s is another host's, and %s answers there", floating, who)
			}
		}
		if who := otherListener(ask.String(), 1, nil, units); who != "" {
			t.Errorf("one that was started later counts: %s", who)
		}
	}
	if a := kernelAddr("0100007F"); a != netip.MustParseAddr("127.0.0.1") {
		t.Error(a)
	}
	if a := kernelAddr("00000000000000000000000001000000"); a != netip.MustParseAddr("::1") {
		t.Error(a)
	}
}
