package address

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// link is the address's device.
func (a Address) link() (netlink.Link, error) {
	if a.Device != "" {
		link, err := netlink.LinkByName(a.Device)
		if _, missing := errors.AsType[netlink.LinkNotFoundError](err); missing {
			return nil, fmt.Errorf("there is no device %s", a.Device)
		}
		return link, err
	}
	all, err := a.addresses(anyHandle)
	if err != nil {
		return nil, err
	}
	index, longest := 0, 0
	for _, have := range all {
		network := prefix(have)
		if network == a.Prefix {
			return netlink.LinkByIndex(have.LinkIndex)
		}
		if network.IsValid() && network.Addr() != a.Addr() && network.Contains(a.Addr()) && network.Bits() > longest {
			index, longest = have.LinkIndex, network.Bits()
		}
	}
	if index == 0 {
		index, _ = a.defaultRoute(nil)
	}
	if index == 0 {
		return nil, fmt.Errorf("no network of this machine holds %v, and there is no default route: set `device:`", a.Addr())
	}
	return netlink.LinkByIndex(index)
}

// defaultRoute is the default route's device (0: there is none) and gateway, of all devices or of one.
func (a Address) defaultRoute(of netlink.Link) (index int, gateway netip.Addr) {
	all, err := whole(func() ([]netlink.Route, error) { return netlink.RouteList(of, a.family()) })
	if err != nil {
		return 0, gateway
	}
	slices.SortStableFunc(all, func(a, b netlink.Route) int { return cmp.Compare(a.Priority, b.Priority) })
	for _, route := range all {
		if route.Dst != nil {
			if bits, _ := route.Dst.Mask.Size(); bits > 0 {
				continue
			}
		}
		hop, out := route.Gw, route.LinkIndex
		if out == 0 && len(route.MultiPath) > 0 {
			hop, out = route.MultiPath[0].Gw, route.MultiPath[0].LinkIndex
		}
		if out == 0 {
			continue
		}
		gateway, _ := netip.AddrFromSlice(hop)
		return out, gateway.Unmap()
	}
	return 0, gateway
}

// fit is the address's device, if that can carry an address now.
func (a Address) fit() (netlink.Link, error) {
	link, err := a.link()
	if err != nil {
		return nil, err
	}
	at := link.Attrs()
	if at.EncapType == "infiniband" {
		return nil, fmt.Errorf("%s is an InfiniBand device: addresses on those are not supported", at.Name)
	}
	if at.MasterIndex > 0 {
		if master, err := netlink.LinkByIndex(at.MasterIndex); err == nil && master.Type() != "vrf" {
			name := master.Attrs().Name
			return nil, fmt.Errorf("%s belongs to the %s %s: set `device: %s`", at.Name, master.Type(), name, name)
		}
	}
	if !isUp(link) {
		return nil, noCarrier(link)
	}
	return link, a.nowhereElse(link)
}

func noCarrier(link netlink.Link) error {
	return fmt.Errorf("%s is down, or has no carrier", link.Attrs().Name)
}

// nowhereElse fails if another device has the address: it is not ours, and would be removed with ours.
func (a Address) nowhereElse(link netlink.Link) error {
	found, err := a.found(anyHandle)
	for _, have := range found {
		if have.LinkIndex == link.Attrs().Index {
			continue
		}
		if other, err := netlink.LinkByIndex(have.LinkIndex); err == nil {
			return fmt.Errorf("%v is set on %s already: remove it there", a.Prefix, other.Attrs().Name)
		}
	}
	return err
}

func isUp(link netlink.Link) bool {
	at := link.Attrs()
	down := at.OperState == netlink.OperDown || at.OperState == netlink.OperLowerLayerDown || at.OperState == netlink.OperNotPresent
	return at.Flags&net.FlagUp != 0 && !down
}

// hasNeighbours reports whether others on the device's network are asked, and told, who has an address.
func hasNeighbours(link netlink.Link) bool {
	at := link.Attrs()
	return at.Flags&net.FlagLoopback == 0 && at.RawFlags&unix.IFF_NOARP == 0 && len(at.HardwareAddr) == macLen
}

// Lacks is why the address could not be set now; nil: nothing is known to be missing.
func (a Address) Lacks() error {
	_, err := a.fit()
	return err
}

// Unplugged fails if the address's device is up, and has no carrier. One that is not there, or is down, is not known.
func (a Address) Unplugged() error {
	link, err := a.link()
	if err != nil || link.Attrs().Flags&net.FlagUp == 0 || isUp(link) {
		return nil
	}
	return noCarrier(link)
}

// MissingRights names what this process lacks to set and announce addresses; "": nothing.
func MissingRights() string {
	var header unix.CapUserHeader
	var caps [2]unix.CapUserData
	header.Version = unix.LINUX_CAPABILITY_VERSION_3
	if unix.Capget(&header, &caps[0]) != nil {
		return ""
	}
	for _, right := range []struct {
		name string
		bit  uint
	}{{"CAP_NET_ADMIN", unix.CAP_NET_ADMIN}, {"CAP_NET_RAW", unix.CAP_NET_RAW}} {
		if caps[0].Effective&(1<<right.bit) == 0 {
			return right.name
		}
	}
	return ""
}
