package address

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

const soon = 10 * time.Second

// host is a kit.Host in whose network this process can act.
type host struct {
	*kit.Host
	t    *testing.T
	said chan string // what its keeper says; nil: it is logged
	lost chan string // what its keeper says of its link; nil: nobody asks
}

// in runs f in the host's network.
func (h host) in(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and the thread ends with the goroutine
		file, err := os.Open(h.Network())
		if err == nil {
			err = unix.Setns(int(file.Fd()), unix.CLONE_NEWNET)
			file.Close()
		}
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}

func (h host) ip(words string) string {
	h.t.Helper()
	out, err := exec.Command("nsenter", append([]string{"--net=" + h.Network(), "ip"}, strings.Fields(words)...)...).CombinedOutput()
	if err != nil {
		h.t.Fatalf("%s: ip %s: %v: %s", h.Name, words, err, out)
	}
	return string(out)
}

// serve answers each connection to any of the host's addresses with its name.
func (h host) serve() {
	h.t.Helper()
	var l net.Listener
	err := h.in(func() (err error) { l, err = net.Listen("tcp", ":80"); return err })
	must.OK(h.t, err)
	h.t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(conn, h.Name)
			conn.Close()
		}
	}()
}

// asks is who answers a client on the host.
func (h host) asks(a Address) (name string) {
	_ = h.in(func() error {
		conn, err := net.DialTimeout("tcp", netip.AddrPortFrom(a.Addr(), 80).String(), 300*time.Millisecond)
		if err != nil {
			return err
		}
		defer conn.Close()
		text, err := io.ReadAll(conn)
		name = string(text)
		return err
	})
	return name
}

// mac is that of the host's device.
func (h host) mac() string {
	var text string
	_ = h.in(func() error {
		dev, err := net.InterfaceByName("eth0")
		text = dev.HardwareAddr.String()
		return err
	})
	return text
}

func (h host) hears(line string) {
	if h.t.Log(h.Name+":", line); h.said != nil {
		h.said <- line
	}
}

// keep runs a keeper; its end is in the channel.
func (h host) keep(a Address, every time.Duration, again ...chan os.Signal) (end <-chan error, stop func()) {
	h.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done, ready, over := make(chan error, 1), make(chan struct{}), make(chan struct{})
	k := Keeper{Address: a, Every: every, Say: h.hears, Claimed: func() { h.hears("claimed") }, Ready: func() error { close(ready); return nil }}
	if len(again) > 0 {
		k.Again = again[0]
	}
	if h.lost != nil {
		k.Lost = func(why string) { h.lost <- why }
	}
	go func() {
		defer close(over)
		done <- h.in(func() error { return k.Run(ctx) })
	}()
	stop = func() { cancel(); <-over }
	h.t.Cleanup(stop)
	select {
	case <-ready:
	case err := <-done:
		h.t.Fatal(err)
	}
	return done, stop
}

func (h host) up(a Address) {
	h.t.Helper()
	must.OK(h.t, h.in(func() error { return a.Up(h.t.Context(), 0) }))
}

func (h host) down(a Address) {
	h.t.Helper()
	must.OK(h.t, h.in(a.Down))
}

// three are two hosts and a client on one network.
func three(t *testing.T) (a, b, c host, four, six Address) {
	t.Helper()
	lab := kit.NewLab(t)
	for i, h := range []*host{&a, &b, &c} {
		*h = host{Host: lab.Host(t, string(rune('a'+i))), t: t}
		h.ip(fmt.Sprintf("addr add fd77::%d/64 dev eth0 nodad", i+1))
	}
	for _, h := range []host{a, b} {
		h.serve()
	}
	ip := netip.MustParseAddr(a.Addr).As4()
	ip[3] = 200
	return a, b, c, Address{Prefix: netip.PrefixFrom(netip.AddrFrom4(ip), 32)}, Address{Prefix: netip.MustParsePrefix("fd77::200/128")}
}

func TestClientsFollowTheAddress(t *testing.T) {
	a, b, c, four, six := three(t)
	for _, ip := range []Address{four, six} {
		a.up(ip)
		_, stop := a.keep(ip, time.Minute)
		kit.Until(t, soon, "a answers", func() bool { return c.asks(ip) == "a" })

		// Another host does not take it, and is told who has it.
		err := b.in(func() error { return ip.Up(t.Context(), 0) })
		if err == nil || err.Error() != ip.Addr().String()+" is in use by "+a.mac() {
			t.Errorf("%v: %v, wanted %s", ip, err, a.mac())
		}

		// But it waits for one that is about to remove it.
		waited := make(chan error, 1)
		go func() { waited <- b.in(func() error { return ip.Up(t.Context(), soon) }) }()
		stop()
		a.down(ip)
		must.OK(t, <-waited)
		b.keep(ip, time.Minute)
		took := kit.Until(t, soon, "b answers", func() bool { return c.asks(ip) == "b" })
		t.Logf("%v: b answers %v after it is ready", ip.Addr(), took)

		b.ip("link set eth0 address 02:00:00:00:77:0" + fmt.Sprint(ip.Addr().BitLen()/64))
		took = kit.Until(t, soon, "b answers with another MAC", func() bool { return c.asks(ip) == "b" })
		t.Logf("%v: b answers %v after its MAC changed", ip.Addr(), took)
		a.down(ip) // it is not there
	}
	if shown := b.ip("-6 addr show dev eth0"); !strings.Contains(shown, "fd77::200/128 scope global nodad deprecated noprefixroute") {
		t.Error(shown)
	}
}

func TestAnAddressThatIsRemovedIsSetAgain(t *testing.T) {
	a, _, c, four, six := three(t)
	for _, ip := range []Address{four, six} {
		a.up(ip)
		end, _ := a.keep(ip, 200*time.Millisecond)
		has := func() bool { return strings.Contains(a.ip("addr show dev eth0"), " "+ip.Prefix.String()+" ") }
		if ip == six { // the kernel removes it with the link
			a.ip("link set eth0 down")
			a.ip("link set eth0 up")
			a.ip("addr add fd77::1/64 dev eth0 nodad")
			kit.Until(t, soon, "the address is back with its link", has)
		}
		for range mostLosses - 1 {
			a.ip("addr del " + ip.Prefix.String() + " dev eth0")
			kit.Until(t, soon, "the address is set again", has)
			kit.Until(t, soon, "a answers", func() bool { return c.asks(ip) == "a" })
		}
		a.ip("addr del " + ip.Prefix.String() + " dev eth0")
		if err := <-end; err == nil || !strings.Contains(err.Error(), "another program removed "+ip.Prefix.String()+" from eth0 3 times in a minute") {
			t.Error(err)
		}
	}
}

// The keeper looks when the link is up again, and has not heard yet that it was down.
func TestTheKernelIsNotBlamedForWhatItRemovesWithALink(t *testing.T) {
	a, _, _, _, six := three(t)
	a.up(six)
	err := a.in(func() (err error) {
		changes, err := changes()
		if err != nil {
			return err
		}
		defer changes.Close()
		k := Keeper{Address: six, Say: a.hears, next: time.Now().Add(soon)}
		if k.link, err = six.link(); err != nil {
			return err
		}
		if err := k.look(changes); err != nil {
			return err
		}
		a.ip("link set eth0 down")
		a.ip("link set eth0 up")
		if err := k.look(changes); err != nil {
			return err
		}
		if len(k.losses) > 0 {
			t.Error("it counts as removed by another program")
		}
		if found, err := six.found(anyHandle); err != nil || len(found) != 1 {
			t.Errorf("it is not set again: %v, %v", found, err)
		}
		return nil
	})
	must.OK(t, err)
}

// After the network was away, the neighbours are told at once, however long the next announcement is off.
func TestAnAddressIsAnnouncedAgainWhenThatIsAsked(t *testing.T) {
	a, _, c, four, _ := three(t)
	a.up(four)
	again := make(chan os.Signal, 1)
	a.keep(four, time.Hour, again)
	forget := func() {
		c.ip("neigh replace " + four.Addr().String() + " lladdr 02:00:00:00:77:99 dev eth0 nud reachable")
	}
	wrong := func() bool { return strings.Contains(c.ip("neigh show dev eth0"), "02:00:00:00:77:99") }
	kit.Until(t, soon, "the first announcements are over", func() bool {
		forget()
		for end := time.Now().Add(2 * hurry); time.Now().Before(end); time.Sleep(50 * time.Millisecond) { // nothing else shows that none comes
			if !wrong() {
				return false
			}
		}
		return true
	})
	again <- os.Interrupt
	took := kit.Until(t, soon, "the client knows again who has it", func() bool { return !wrong() })
	t.Logf("told anew after %v", took)
	if name := c.asks(four); name != "a" {
		t.Errorf("%q answers", name)
	}
}

// Another machine that claims the address is named, and answered, but not at each of its packets.
func TestAnotherClaimantIsNamedAndAnswered(t *testing.T) {
	a, b, c, four, six := three(t)
	for _, ip := range []Address{four, six} {
		a.up(ip)
		said := make(chan string, 16)
		a.said = said
		_, stop := a.keep(ip, time.Hour)
		kit.Until(t, soon, "a answers", func() bool { return c.asks(ip) == "a" })
		claim := func() {
			if err := b.in(func() error {
				link, err := ip.link()
				if err != nil {
					return err
				}
				w, err := ip.open(link)
				if err != nil {
					return err
				}
				defer w.file.Close()
				for _, p := range ip.announcement(link.Attrs().HardwareAddr) {
					if err := w.send(p); err != nil {
						return err
					}
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		b.ip("addr add " + ip.Prefix.String() + " dev eth0" + map[bool]string{true: " nodad"}[ip == six])
		claim()
		if line := <-said; line != fmt.Sprintf("another machine claims %v: %s; announcing it again", ip.Addr(), b.mac()) {
			t.Error(line)
		}
		kit.Until(t, soon, "it is told", func() bool { return len(said) > 0 && <-said == "claimed" })
		b.down(ip)
		kit.Until(t, soon, "a answers again", func() bool { return c.asks(ip) == "a" })
		claim()
		kit.Throughout(t, 100*time.Millisecond, "it is not said again at once", func() bool { return len(said) == 0 })
		if ip == four {
			kit.Until(t, 2*contestEvery, "it is answered once it may be", func() bool { return len(said) > 0 })
		}
		stop()
	}
}

func TestOnlyTheAddressItselfIsRemoved(t *testing.T) {
	a, _, _, four, _ := three(t)
	a.ip("addr add " + four.Addr().String() + "/24 dev eth0")
	for _, mine := range []string{"", "eth0"} {
		four.Device = mine
		must.OK(t, a.in(func() error {
			if set := four.Beside(); set != netip.PrefixFrom(four.Addr(), 24) {
				return fmt.Errorf("beside %v is %v", four, set)
			}
			return nil
		}))
	}
	a.up(four)
	a.up(four) // it is there already
	a.down(four)
	if shown := a.ip("addr show dev eth0"); strings.Contains(shown, four.Prefix.String()) || !strings.Contains(shown, four.Addr().String()+"/24") {
		t.Error(shown)
	}
	four.Device = "eth7"
	a.down(four)
}

func TestDevicesThatCannotCarryAnAddressAreNamed(t *testing.T) {
	a, _, _, four, six := three(t)
	a.ip("link add br0 type bridge")
	a.ip("link add one type veth peer name other")
	a.ip("link set one master br0")
	for _, one := range []struct {
		Address
		fault string
	}{
		{Address{four.Prefix, "eth7"}, "there is no device eth7"},
		{Address{four.Prefix, "one"}, "one belongs to the bridge br0: set `device: br0`"},
		{Address{four.Prefix, "br0"}, "br0 is down, or has no carrier"},
		{Address{Prefix: netip.MustParsePrefix("198.51.100.1/32")}, "no network of this machine holds 198.51.100.1, and there is no default route: set `device:`"},
		{Address{Prefix: netip.MustParsePrefix("2001:db8::1/128")}, "no network of this machine holds 2001:db8::1, and there is no default route: set `device:`"},
	} {
		if err := a.in(func() error { return one.Up(t.Context(), 0) }); err == nil || err.Error() != one.fault {
			t.Errorf("%+v: %v", one.Address, err)
		}
		if err := a.in(one.Lacks); err == nil || err.Error() != one.fault { // a standby with such a device does not stand
			t.Errorf("%+v: %v", one.Address, err)
		}
	}
	must.Report(t, a.in(six.Lacks))
	a.ip("route add default via " + a.Addr)
	far := Address{Prefix: netip.MustParsePrefix("198.51.100.1/32")}
	a.up(far)
	if shown := a.ip("addr show dev eth0"); !strings.Contains(shown, "198.51.100.1/32") {
		t.Error(shown)
	}
	a.down(far)
}
