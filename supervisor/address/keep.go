package address

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Linux ignores what changes a neighbour's MAC within a second of the previous change.
const (
	hurry = 1100 * time.Millisecond
	burst = 5 // announcements, the first at once
)

// An address that is removed so often in such a time is somebody else's business.
const (
	mostLosses   = 3
	lossesWithin = time.Minute
)

// Keeper keeps an address that was set, and tells the neighbours who has it.
type Keeper struct {
	Address
	Every   time.Duration     // how often it is announced, after the first seconds
	Say     func(line string) // what happens to it
	Claimed func()            // another machine claims it; nil: nobody asks
	// Called every second while it has had no link for that long, and with "" when it has one again; nil: nobody asks.
	Lost  func(why string)
	Ready func() error     // called after the first announcement
	Again <-chan os.Signal // the network was away: tell the neighbours anew

	link   netlink.Link
	wire   *wire // nil: there are no neighbours
	up     bool
	mac    net.HardwareAddr
	sent   int // announcements since the last change
	next   time.Time
	losses []time.Time
	mute   string    // why the last announcement was not sent
	down   time.Time // since when it has no link; zero: it has one
	lost   bool      // that was told
	anew   atomic.Bool
}

// lostAfter is how long a link may be away before that counts, and how often it is told.
const lostAfter = time.Second

// errGone says that the device was deleted.
var errGone = errors.New("it was deleted")

// Run keeps the address until the context ends, or fails.
func (k *Keeper) Run(ctx context.Context) (err error) {
	changes, err := changes()
	if err != nil {
		return err
	}
	defer changes.Close()
	if k.link, err = k.Address.link(); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { changes.Close() })()
	go func() {
		for {
			select {
			case <-k.Again:
				k.anew.Store(true)
				_ = changes.SetReadDeadline(time.Now()) // await looks at anew in any case
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		err := k.onDevice(ctx, changes)
		if errors.Is(err, errGone) {
			err = k.awaitDevice(ctx, changes)
		}
		if err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// onDevice keeps the address until its device is deleted.
func (k *Keeper) onDevice(ctx context.Context, changes *os.File) (err error) {
	k.wire = nil
	if hasNeighbours(k.link) {
		if k.wire, err = k.open(k.link); err != nil {
			return err
		}
		var contesting sync.WaitGroup
		defer contesting.Wait()
		defer k.wire.file.Close()
		if err := k.wire.listen(k.Address); err != nil {
			return fmt.Errorf("listen on %s: %w", k.link.Attrs().Name, err)
		}
		contesting.Go(k.contest)
	}
	for ctx.Err() == nil {
		if err := k.look(changes); err != nil {
			return err
		}
		if k.anew.Swap(false) {
			k.sent, k.next = 0, time.Time{}
		}
		if !time.Now().Before(k.next) {
			k.announce()
		}
		if k.Ready != nil {
			if err := k.Ready(); err != nil {
				return err
			}
			k.Ready = nil
		}
		if err := k.await(changes); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// awaitDevice sets the address on the device of the same name, as soon as that is there.
func (k *Keeper) awaitDevice(ctx context.Context, changes *os.File) error {
	here := Address{k.Prefix, k.link.Attrs().Name}
	k.Say(fmt.Sprintf("%s was deleted, and %v with it", here.Device, k.Prefix))
	for ctx.Err() == nil {
		link, err := here.fit()
		k.tell(err)
		if err == nil {
			k.link, k.up, k.mac = link, false, nil
			k.Say(fmt.Sprintf("%s is there again; setting %v", here.Device, k.Prefix))
			return k.set(link)
		}
		k.next = time.Now().Add(lostAfter)
		if err := k.await(changes); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// tell tells that the address has no link, once that is so for a while, and why; nil: it has one.
func (k *Keeper) tell(why error) {
	switch {
	case why == nil:
		k.down = (time.Time{})
		if k.lost && k.Lost != nil {
			k.Lost("")
		}
		k.lost = false
	case k.down.IsZero():
		k.down = time.Now()
	case time.Since(k.down) >= lostAfter:
		k.lost = true
		if k.Lost != nil {
			k.Lost(why.Error())
		}
	}
}

// changes is readable when a device or an address changes.
func changes() (*os.File, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open a netlink socket: %w", err)
	}
	f := os.NewFile(uintptr(fd), "netlink socket")
	if err := unix.Bind(fd, &unix.SockaddrNetlink{
		Family: unix.AF_NETLINK, Groups: unix.RTMGRP_LINK | unix.RTMGRP_IPV4_IFADDR | unix.RTMGRP_IPV6_IFADDR,
	}); err != nil {
		f.Close()
		return nil, fmt.Errorf("listen for changes of addresses: %w", err)
	}
	return f, nil
}

// await returns after a change, or when an announcement is due, or that there is no link is to be told.
func (k *Keeper) await(changes *os.File) error {
	due := k.next
	again := k.down.Add(lostAfter)
	if k.lost {
		due = time.Now().Add(lostAfter)
	} else if !k.down.IsZero() && again.Before(due) {
		due = again
	}
	if err := changes.SetReadDeadline(due); err != nil {
		return err
	}
	if k.anew.Load() {
		return nil
	}
	said := make([]byte, 64<<10)
	n, err := changes.Read(said)
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, unix.ENOBUFS) { // some were lost: look all the same
		return nil
	}
	k.hear(said[:n])
	return err
}

// hear notes that the device was down, as the kernel says: it may be up again by now.
func (k *Keeper) hear(said []byte) {
	all, _ := syscall.ParseNetlinkMessage(said)
	for _, m := range all {
		if m.Header.Type == unix.RTM_NEWLINK && len(m.Data) >= unix.SizeofIfInfomsg {
			info := nl.DeserializeIfInfomsg(m.Data)
			if int(info.Index) == k.link.Attrs().Index && info.Flags&unix.IFF_UP == 0 {
				k.up = false
			}
		}
	}
}

// hearAll hears what the kernel has said up to now, and reports whether that is anything.
func (k *Keeper) hearAll(changes *os.File) (heard bool, err error) {
	raw, err := changes.SyscallConn()
	if err != nil {
		return false, err
	}
	said := make([]byte, 64<<10)
	err = raw.Control(func(fd uintptr) {
		for {
			n, _, err := unix.Recvfrom(int(fd), said, unix.MSG_DONTWAIT)
			if errors.Is(err, unix.ENOBUFS) { // some were lost
				heard = true
				continue
			}
			if err != nil {
				return
			}
			heard = true
			k.hear(said[:n])
		}
	})
	return heard, err
}

// look compares what is there with what should be.
func (k *Keeper) look(changes *os.File) error {
	var found []netlink.Addr
	for changed := true; changed; { // what it sees has to be of one moment
		link, err := netlink.LinkByIndex(k.link.Attrs().Index)
		if _, gone := errors.AsType[netlink.LinkNotFoundError](err); gone {
			return errGone
		}
		if err != nil {
			return fmt.Errorf("look at %s: %w", k.link.Attrs().Name, err)
		}
		k.link = link
		if found, err = (Address{k.Prefix, link.Attrs().Name}).found(anyHandle); err != nil {
			return err
		}
		found = slices.DeleteFunc(found, func(have netlink.Addr) bool { return have.LinkIndex != link.Attrs().Index })
		if changed, err = k.hearAll(changes); err != nil {
			return err
		}
	}
	wasUp := k.up
	if k.up = isUp(k.link); k.up {
		k.tell(nil)
	} else {
		k.tell(noCarrier(k.link))
	}
	if len(found) == 0 && k.up {
		if err := k.regain(wasUp); err != nil {
			return err
		}
	}
	if mac := k.link.Attrs().HardwareAddr; k.up && !wasUp || !slices.Equal(mac, k.mac) {
		k.mac, k.sent, k.next = slices.Clone(mac), 0, time.Time{}
	}
	return nil
}

// regain sets an address that was removed; blame: not by the kernel, which removes IPv6 addresses of a device that goes down.
func (k *Keeper) regain(blame bool) error {
	name := k.link.Attrs().Name
	now := time.Now()
	if blame {
		k.losses = append(slices.DeleteFunc(k.losses, func(at time.Time) bool { return now.Sub(at) > lossesWithin }), now)
		if len(k.losses) >= mostLosses {
			return fmt.Errorf("another program removed %v from %s %d times in a minute", k.Prefix, name, len(k.losses))
		}
	}
	k.Say(fmt.Sprintf("%v was removed from %s; setting it again", k.Prefix, name))
	k.sent, k.next = 0, time.Time{}
	return k.set(k.link)
}

// announce tells the neighbours who has the address, and when to do so again.
func (k *Keeper) announce() {
	wait := k.Every
	if k.sent++; k.sent < burst {
		wait = min(hurry, k.Every)
	}
	k.next = time.Now().Add(wait)
	if k.wire == nil || !k.up {
		return
	}
	all := k.announcement(k.mac)
	if _, gateway := k.defaultRoute(k.link); gateway.IsValid() {
		all = append(all, k.greeting(k.mac, gateway))
	}
	mute := ""
	for _, p := range all {
		if err := k.wire.send(p); err != nil {
			mute = err.Error()
		}
	}
	if mute != "" && mute != k.mute {
		k.Say(fmt.Sprintf("cannot announce %v on %s, trying again: %s", k.Addr(), k.link.Attrs().Name, mute))
	}
	k.mute = mute
}
