package kit

import (
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/must"
)

// With a host's power, all that was started on it goes, daemons in sessions of their own included; the other host's stays.
func TestPowerTakesAllThatRunsOnAHost(t *testing.T) {
	need.These(t, "cgroup")
	lab := NewLab(t)
	a, b := lab.Host(t, "a"), lab.Host(t, "b")
	accounts := map[*Host]*Accounts{}
	for _, h := range []*Host{a, b} {
		h.PowerOn(t)
		accounts[h] = NewAccounts(t, lab)
		words := accounts[h].Child("children=1", "daemons=1", "every=2ms")
		h.Run(t, words[0], words[1:]...)
		Until(t, Soon, "four processes run on "+h.Name, func() bool { return len(accounts[h].Processes()) == 4 })
	}
	boot := a.group
	a.PowerOff(t)
	if left := accounts[a].Processes(); len(left) > 0 {
		t.Errorf("still there: %v", left)
	}
	if left := accounts[b].Processes(); len(left) != 4 {
		t.Errorf("%d of 4 processes are left on the other host", len(left))
	}
	if _, err := os.Stat(boot); err == nil {
		t.Errorf("the cgroup %s is left", boot)
	}
	heard := hear(t, b)
	if heard(a) {
		t.Error("a host without power is heard")
	}
	a.PowerOn(t)
	a.Heal(t)
	if a.group == boot {
		t.Error("a cgroup that was killed is used again")
	}
	Until(t, Soon, "a host with power again is heard", func() bool { return heard(a) })
	if out, err := a.Command("cat", "/proc/self/cgroup").Output(); err != nil || !strings.Contains(string(out), "boot3") {
		t.Errorf("it is in %s (%v)", out, err)
	}
}

// A host that is frozen shows no sign of life, and then goes on.
func TestAFrozenHostStandsStill(t *testing.T) {
	need.These(t, "cgroup")
	lab := NewLab(t)
	a := lab.Host(t, "a")
	a.PowerOn(t)
	accounts := NewAccounts(t, lab)
	words := accounts.Child("every=2ms")
	a.Run(t, words[0], words[1:]...)
	last := func() int64 {
		runs := accounts.Runs()
		if len(runs) != 1 {
			return 0
		}
		return runs[0].Last
	}
	Until(t, Soon, "it runs", func() bool { return last() > 0 })
	a.Freeze(t, true)
	was := last()
	Throughout(t, 300*time.Millisecond, "it stands still", func() bool { return last() == was })
	a.Freeze(t, false)
	Until(t, Soon, "it goes on", func() bool { return last() > was })
}

func TestPacketsAreLostAndLate(t *testing.T) {
	lab := NewLab(t)
	a, b := lab.Host(t, "a"), lab.Host(t, "b")
	arrived := count(t, b)
	const sent = 200 // what a socket's buffer takes
	arrivals := func() int {
		send(t, a, b, sent, "x")
		return arrived()
	}
	Until(t, Soon, "the way is known", func() bool { return arrivals() > 0 })
	if n := arrivals(); n != sent {
		t.Errorf("%d of %d arrive", n, sent)
	}
	a.Lose(t, 40)
	if n := arrivals(); n < sent/3 || n > sent*4/5 {
		t.Errorf("%d of %d arrive when 40 of a hundred are to be lost", n, sent)
	}
	a.Heal(t)
	a.Slow(t, "16kbit")
	send(t, a, b, 5, strings.Repeat("x", 1200)) // more than the line takes at once
	if n := arrived(); n >= 5 {
		t.Errorf("all %d arrive at once", n)
	}
	a.Heal(t)
	if n := arrivals(); n != sent {
		t.Errorf("healed, %d of %d arrive", n, sent)
	}
}

// count makes the host hear datagrams, and tells how many arrived until there was silence for a moment.
func count(t *testing.T, h *Host) func() int {
	t.Helper()
	var conn net.PacketConn
	err := h.in(func() (err error) {
		conn, err = net.ListenPacket("udp", h.Addr+":9999")
		return err
	})
	must.OK(t, err)
	t.Cleanup(func() { conn.Close() })
	return func() int {
		buf := make([]byte, 2000)
		for n := 0; ; n++ {
			_ = conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
			if _, _, err := conn.ReadFrom(buf); err != nil {
				return n
			}
		}
	}
}

func send(t *testing.T, from, to *Host, times int, text string) {
	t.Helper()
	err := from.in(func() error {
		c, err := net.Dial("udp", to.Addr+":9999")
		if err != nil {
			return err
		}
		defer c.Close()
		for range times {
			if _, err := c.Write([]byte(text)); err != nil {
				return err
			}
		}
		return nil
	})
	must.OK(t, err)
}
