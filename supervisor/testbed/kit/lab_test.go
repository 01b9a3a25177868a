package kit

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/testbed/must"
)

// in runs f on a thread that is in the host's network; the thread ends with it.
func (h *Host) in(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread is of no use to anybody else
		done <- func() error {
			ns, err := os.Open("/run/netns/" + h.ns)
			if err != nil {
				return err
			}
			defer ns.Close()
			if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
				return fmt.Errorf("enter %s: %w", h.ns, err)
			}
			return f()
		}()
	}()
	return <-done
}

// hear makes the host hear datagrams; heard tells whether one that another host sends arrives.
func hear(t *testing.T, to *Host) (heard func(from *Host) bool) {
	t.Helper()
	var conn net.PacketConn
	err := to.in(func() (err error) {
		conn, err = net.ListenPacket("udp", to.Addr+":9999")
		return err
	})
	must.OK(t, err)
	t.Cleanup(func() { conn.Close() })
	sent := 0
	return func(from *Host) bool {
		sent++
		text := fmt.Sprint(from.Name, sent)
		return Reached(300*time.Millisecond, func() bool {
			_ = from.in(func() error {
				c, err := net.Dial("udp", to.Addr+":9999")
				if err != nil {
					return err
				}
				defer c.Close()
				_, err = c.Write([]byte(text))
				return err
			})
			buf := make([]byte, 100)
			for {
				_ = conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
				n, _, err := conn.ReadFrom(buf)
				if err != nil {
					return false
				}
				if string(buf[:n]) == text {
					return true
				}
			}
		})
	}
}

func TestFaultsHitWhatTheyShould(t *testing.T) {
	lab := NewLab(t)
	a, b, c := lab.Host(t, "a"), lab.Host(t, "b"), lab.Host(t, "c")
	atA, atB, atC := hear(t, a), hear(t, b), hear(t, c)
	expect := func(what string, got, want bool) {
		t.Helper()
		if got != want {
			t.Errorf("%s: arrives: %v", what, got)
		}
	}
	expect("whole, a to b", atB(a), true)
	a.Mute(t, b.Addr)
	expect("a mute, a to b", atB(a), false)
	expect("a mute, b to a", atA(b), true)
	expect("a mute, a to c", atC(a), true)
	a.Heal(t)
	expect("healed, a to b", atB(a), true)
	a.Deafen(t, b.Addr)
	expect("a deaf, a to b", atB(a), true)
	expect("a deaf, b to a", atA(b), false)
	a.Heal(t)
	a.CutFrom(t, b.Addr)
	expect("a cut from b, a to b", atB(a), false)
	expect("a cut from b, b to a", atA(b), false)
	expect("a cut from b, c to a", atA(c), true)
	b.Heal(t)
	a.Cut(t)
	expect("a cut, a to b", atB(a), false)
	expect("a cut, c to a", atA(c), false)
	expect("a cut, b to c", atC(b), true)
	a.Heal(t)
	expect("healed, b to a", atA(b), true)
}

func TestAHostHasItsOwnIdentity(t *testing.T) {
	lab := NewLab(t)
	a, b := lab.Host(t, "a"), lab.Machine(t, "b")
	read := func(h *Host, path string) string {
		t.Helper()
		out, err := h.Command("cat", path).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	const machine, boot = "/etc/machine-id", "/proc/sys/kernel/random/boot_id"
	real, err := os.ReadFile(machine)
	must.OK(t, err)
	ids := map[string]bool{strings.TrimSpace(string(real)): true, read(a, machine): true, read(b, machine): true}
	if len(ids) != 3 {
		t.Errorf("machine ids are not distinct: %v", ids)
	}
	before := read(a, boot)
	if before != read(a, boot) || before == read(b, boot) {
		t.Error("a boot id belongs to a host and stays until its reboot")
	}
	id := read(a, machine)
	a.Reboot(t)
	after := read(a, boot)
	if before == after || len(after) != len(before) {
		t.Errorf("boot id %s after %s", after, before)
	}
	if read(a, machine) != id {
		t.Error("a reboot changed the machine id")
	}
}
