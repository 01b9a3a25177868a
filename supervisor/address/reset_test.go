package address

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/testbed/must"
)

// A program that lives on, as a demoted primary does, cannot send to its clients of the address: they are told at once.
func TestClientsOfAnAddressThatIsRemovedAreTold(t *testing.T) {
	a, _, c, four, six := three(t)
	listen := func(network string) (port uint16) {
		var l net.Listener
		if err := a.in(func() (err error) { l, err = net.Listen(network, ":0"); return err }); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				t.Cleanup(func() { conn.Close() })
				_, _ = conn.Write([]byte("!"))
			}
		}()
		return netip.MustParseAddrPort(l.Addr().String()).Port()
	}
	both, alone := listen("tcp"), listen("tcp4") // one of them has IPv4 clients in IPv6 sockets
	dial := func(ip netip.Addr, port uint16) (conn net.Conn) {
		err := c.in(func() (err error) { conn, err = net.Dial("tcp", netip.AddrPortFrom(ip, port).String()); return err })
		if err == nil {
			t.Cleanup(func() { conn.Close() })
			_, err = conn.Read(make([]byte, 1))
		}
		must.OK(t, err)
		_ = conn.SetReadDeadline(time.Now().Add(soon))
		return conn
	}
	for _, to := range []struct {
		Address
		port uint16
	}{{four, both}, {four, alone}, {six, both}} {
		ip, port := to.Address, to.port
		a.up(ip)
		conn, other := dial(ip.Addr(), port), dial(netip.MustParseAddr(a.Addr), port)
		a.down(ip)
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNRESET) {
			t.Errorf("%v, port %d: %v", ip.Addr(), port, err)
		}
		_ = other.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		if _, err := other.Read(make([]byte, 1)); errors.Is(err, unix.ECONNRESET) {
			t.Errorf("a connection to another address was reset: %v", err)
		}
	}
}
