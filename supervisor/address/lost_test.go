package address

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// A device that is away for a second, cut off or deleted, is told, and so is that it is back: then it has the address again.
func TestALostLinkIsTold(t *testing.T) {
	a, _, c, four, six := three(t)
	for _, ip := range []Address{four, six} {
		here := func(want bool) {
			t.Helper()
			must.OK(t, a.in(func() error {
				if is := ip.Here(); is != want {
					return fmt.Errorf("%v is here: %v", ip, is)
				}
				return nil
			}))
		}
		here(false)
		a.up(ip)
		here(true)
		lost := make(chan string, 100)
		a.lost = lost
		_, stop := a.keep(ip, time.Minute)
		kit.Until(t, soon, "a answers", func() bool { return c.asks(ip) == "a" })
		away := func(how func(), why string) {
			t.Helper()
			how()
			began := time.Now()
			if said := <-lost; said != why || time.Since(began) < lostAfter-kit.Stall || time.Since(began) > 2*lostAfter+kit.Stall {
				t.Errorf("%v: %q after %v", ip, said, time.Since(began))
			}
			if said := <-lost; said != why { // and again, for one who did not hear it
				t.Errorf("%v: %q", ip, said)
			}
		}
		back := func(how func()) {
			t.Helper()
			how()
			kit.Until(t, soon, "that it is back is told", func() bool { return len(lost) > 0 && <-lost == "" })
			kit.Until(t, soon, "a answers again", func() bool { return c.asks(ip) == "a" })
		}
		away(func() { a.Cut(t) }, "eth0 is down, or has no carrier")
		back(func() { a.Heal(t) })
		away(func() { a.ip("link set eth0 down") }, "eth0 is down, or has no carrier")
		back(func() { a.ip("link set eth0 up"); a.ip("addr replace fd77::1/64 dev eth0 nodad") })
		away(func() { a.ip("link set eth0 down"); a.ip("link set eth0 name old0") }, "old0 is down, or has no carrier")
		back(func() {
			a.ip("link set old0 name eth0")
			a.ip("link set eth0 up")
			a.ip("addr replace fd77::1/64 dev eth0 nodad")
		})
		a.Cut(t)
		a.Heal(t)
		kit.Throughout(t, 2*lostAfter, "a short break is not told", func() bool { return len(lost) == 0 })
		stop()
		a.down(ip)
	}
	a.up(four)
	lost := make(chan string, 100)
	a.lost = lost
	a.keep(four, time.Minute)
	a.DeleteLink(t)
	if said := <-lost; said != "there is no device eth0" {
		t.Error(said)
	}
	a.ip("link add eth0 type veth peer name other")
	a.ip("link set other up")
	a.ip("link set eth0 up")
	kit.Until(t, soon, "the new device has the address", func() bool { return strings.Contains(a.ip("addr show dev eth0"), four.Prefix.String()) })
	kit.Until(t, soon, "that is told", func() bool { return len(lost) > 0 && <-lost == "" })
}

// The address is removed from its device, whatever that is called by now.
func TestARenamedDeviceLosesItsAddress(t *testing.T) {
	a, _, _, four, six := three(t)
	for _, ip := range []Address{four, six} {
		ip.Device = "eth0"
		a.ip("addr replace fd77::1/64 dev eth0 nodad")
		a.up(ip)
		a.ip("link set eth0 down")
		a.ip("link set eth0 name old0")
		a.ip("link set old0 up")
		a.ip("link add eth0 type veth peer name other")
		if ip == six {
			a.ip("addr replace " + ip.Prefix.String() + " dev old0 nodad") // the kernel has removed it
		}
		a.down(ip)
		if shown := a.ip("addr show"); strings.Contains(shown, ip.Prefix.String()) {
			t.Errorf("%v is left: %s", ip, shown)
		}
		a.ip("link del eth0")
		a.ip("link set old0 down")
		a.ip("link set old0 name eth0")
		a.ip("link set eth0 up")
	}
}

// What the administrator has set on lo is left alone, and no device but the address's may have it.
func TestAnAddressOfTheAdministratorIsLeftAlone(t *testing.T) {
	a, _, c, four, six := three(t)
	for _, ip := range []Address{four, six} {
		a.ip("addr add " + ip.Prefix.String() + " dev lo")
		a.up(ip)
		_, stop := a.keep(ip, time.Minute)
		kit.Until(t, soon, "a answers", func() bool { return c.asks(ip) == "a" })
		stop()
		a.down(ip)
		shown := a.ip("addr show dev lo")
		if !strings.Contains(shown, ip.Prefix.String()) || strings.Contains(a.ip("addr show dev eth0"), ip.Prefix.String()) {
			t.Error(shown)
		}
		a.ip("addr del " + ip.Prefix.String() + " dev lo")
		a.ip(fmt.Sprint("link add other", ip.Addr().BitLen(), " type veth peer name peer", ip.Addr().BitLen()))
		a.ip(fmt.Sprint("addr add ", ip.Prefix, " dev other", ip.Addr().BitLen()))
		ip.Device = "eth0"
		err := a.in(func() error { return ip.Up(t.Context(), 0) })
		if err == nil || err.Error() != fmt.Sprintf("%v is set on other%d already: remove it there", ip.Prefix, ip.Addr().BitLen()) {
			t.Error(err)
		}
	}
	own := Address{netip.MustParsePrefix("198.51.100.7/32"), "lo"}
	a.up(own)
	a.down(own)
	if shown := a.ip("addr show dev lo"); strings.Contains(shown, "198.51.100.7") {
		t.Error(shown)
	}
}

// Of a device that a program before the address may make, or set up, only that it has no carrier is known.
func TestADeviceThatMayComeIsNotMissed(t *testing.T) {
	a, _, _, four, _ := three(t)
	four.Device = "eth0"
	unplugged := func() string { return fmt.Sprint(a.in(four.Unplugged)) }
	if why := unplugged(); why != "<nil>" {
		t.Error(why)
	}
	a.Cut(t)
	kit.Until(t, soon, "it has no carrier", func() bool { return unplugged() == "eth0 is down, or has no carrier" })
	a.ip("link set eth0 down")
	if why := unplugged(); why != "<nil>" {
		t.Error(why)
	}
	a.DeleteLink(t)
	if why := unplugged(); why != "<nil>" {
		t.Error(why)
	}
}
