package address

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Address is an IP address with the length of its network, on a device.
type Address struct {
	netip.Prefix
	Device string // "": the one that has the address, whose network holds it, or that the default route uses
}

// Up sets the address, unless another machine answers for it until patience is over: one that had it may be removing it.
func (a Address) Up(ctx context.Context, patience time.Duration) error {
	link, err := a.fit()
	if err != nil {
		return err
	}
	if err := a.ask(ctx, link, patience); err != nil {
		return err
	}
	return a.set(link)
}

// Here reports whether this machine has the address.
func (a Address) Here() bool {
	found, err := a.found(anyHandle)
	return err == nil && len(found) > 0
}

// Beside is the address with another length, where this machine has that: it stays when this one is removed. Not valid: it has not.
func (a Address) Beside() netip.Prefix {
	all, _ := a.addresses(anyHandle)
	for _, have := range all {
		if set := prefix(have); set.Addr() == a.Addr() && set != a.Prefix && !set.Addr().IsLinkLocalUnicast() {
			return set
		}
	}
	return netip.Prefix{}
}

func (a Address) set(link netlink.Link) error {
	mask := net.CIDRMask(a.Bits(), a.Addr().BitLen())
	addr := &netlink.Addr{IPNet: &net.IPNet{IP: a.Addr().AsSlice(), Mask: mask}}
	if a.Addr().Is6() {
		// The lock has decided who has it, so no duplicate address detection, which takes a second. It is no source of other connections.
		forever := uint32(math.MaxUint32)
		addr.Flags, addr.ValidLft, addr.PreferedLft = unix.IFA_F_NODAD|unix.IFA_F_NOPREFIXROUTE, int(forever), 0
	}
	if err := netlink.AddrReplace(link, addr); err != nil {
		return fmt.Errorf("set %v on %s: %w%s", a.Prefix, link.Attrs().Name, err, hint(err))
	}
	return nil
}

// hint names the right that is missing.
func hint(err error) string {
	if errors.Is(err, unix.EPERM) {
		return " (the supervisor needs CAP_NET_ADMIN and CAP_NET_RAW)"
	}
	return ""
}

// found are the devices' addresses that are this one, on any of them: a device may have another name by now, and another one its old name.
// Only of a link-local address each device may have its own.
func (a Address) found(h *netlink.Handle) (found []netlink.Addr, err error) {
	all, err := a.addresses(h)
	if err != nil {
		return nil, err
	}
	index := 0
	if a.Device != "" && a.Addr().IsLinkLocalUnicast() {
		link, err := h.LinkByName(a.Device)
		_, gone := errors.AsType[netlink.LinkNotFoundError](err)
		if err != nil && !gone {
			return nil, fmt.Errorf("find %s: %w", a.Device, err)
		}
		if !gone {
			index = link.Attrs().Index
		}
	}
	for _, have := range all {
		if prefix(have) == a.Prefix && (index == 0 || have.LinkIndex == index) {
			found = append(found, have)
		}
	}
	return found, nil
}

func (a Address) family() int {
	if a.Addr().Is6() {
		return netlink.FAMILY_V6
	}
	return netlink.FAMILY_V4
}

// prefix is an address as the kernel has it; not valid: it belongs to a point-to-point link.
func prefix(have netlink.Addr) netip.Prefix {
	ip, ok := netip.AddrFromSlice(have.IP)
	if !ok || have.Peer != nil {
		return netip.Prefix{}
	}
	bits, _ := have.Mask.Size()
	return netip.PrefixFrom(ip.Unmap(), bits)
}

// whole repeats a listing during which something changed.
func whole[T any](list func() ([]T, error)) (all []T, err error) {
	for range 10 {
		if all, err = list(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	return all, err
}

// anyHandle opens a socket for each request.
var anyHandle = &netlink.Handle{}

// loopback is the index of lo, in each network namespace.
const loopback = 1

// addresses are those of all devices. What is on lo is the administrator's, unless lo is the address's device.
func (a Address) addresses(h *netlink.Handle) ([]netlink.Addr, error) {
	all, err := whole(func() ([]netlink.Addr, error) { return h.AddrList(nil, a.family()) })
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	return slices.DeleteFunc(all, func(have netlink.Addr) bool { return have.LinkIndex == loopback && a.Device != "lo" }), nil
}
