package config

import (
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// Address is an IP address that moves with a service.
type Address struct {
	IP       IP            `yaml:"ip" doc:"The IP address, with the length of its network (default: /32 or /128)."`
	Device   string        `yaml:"device,omitempty" doc:"The network device. Default: the one whose network holds the address, else that of the default route."`
	Announce time.Duration `yaml:"announce" doc:"How often the neighbours are informed who has it, after the first five seconds."`
}

// Addresses are written as one address, in a short or long form, or as a list.
type Addresses []Address

const (
	defaultAnnounce = time.Minute
	oftenAnnounced  = time.Second // Linux ignores more frequent ones
)

// IP is an IP address with a length.
type IP string

// UnmarshalText reads 192.0.2.10 and 192.0.2.10/32.
func (ip *IP) UnmarshalText(text []byte) error {
	prefix, err := netip.ParsePrefix(string(text))
	if addr, bare := netip.ParseAddr(string(text)); bare == nil && addr.Zone() == "" {
		prefix, err = netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	switch addr := prefix.Addr(); {
	case err != nil:
		return fmt.Errorf("%s is not an IP address, with or without a length, such as 192.0.2.10 or 2001:db8::10/128", quoted(string(text)))
	case addr.IsLoopback():
		return fmt.Errorf("%s is a loopback address, which every host has for itself", quoted(string(text)))
	case addr.Is4In6() || addr.IsUnspecified() || addr.IsMulticast() || addr == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return fmt.Errorf("%s is not an address of one machine", quoted(string(text)))
	case prefix.Bits() < addr.BitLen()-1 && addr == prefix.Masked().Addr():
		return fmt.Errorf("%s is a network, not an address in it", quoted(string(text)))
	}
	*ip = IP(prefix.String())
	return nil
}

// Prefix is the address, and the length of its network.
func (ip IP) Prefix() netip.Prefix {
	prefix, _ := netip.ParsePrefix(string(ip)) // UnmarshalText has read it
	return prefix
}

// Addr is the address alone.
func (ip IP) Addr() string { return ip.Prefix().Addr().String() }

func (a Address) check(p place) {
	at := p.key("ip")
	if !at.given() {
		at = p // the short form
	}
	switch prefix := a.IP.Prefix(); {
	case a.IP == "":
		p.key("ip").and(at).fault("missing: name the IP address")
	case prefix.Addr().Is6() && prefix.Addr().IsLinkLocalUnicast() && a.Device == "":
		at.fault("%s is a link-local address, which every network has: name the device, as in {ip: %[1]s, device: eth0}",
			quoted(a.IP.Addr()))
	case !prefix.IsSingleIP():
		at.warn("with the length /%d it is removed together with another address of that network: /%d, the default, is safe",
			prefix.Bits(), prefix.Addr().BitLen())
	}
	if device := p.key("device"); len(a.Device) > 15 || strings.ContainsAny(a.Device, "/: \t\n\x00") || a.Device == "" && device.given() {
		device.fault("%s is not the name of a network device, such as eth0", quoted(a.Device))
	}
	if announce := p.key("announce"); checkPositive(announce, a.Announce) && a.Announce < oftenAnnounced {
		announce.fault("%v is too short: %v at least", a.Announce, oftenAnnounced)
	}
}

// check doubts an empty list, unless that takes an address of the defaults, or of other nodes, away.
func (list Addresses) check(p place) {
	if len(list) == 0 && p.given() && !p.where.spots[p.keys[0].id()].hides {
		p.noEffect("an address", "one, or leave the key out")
	}
	list.each(p, func(p place, a Address) { a.check(p) })
}

// each calls f with each address, and where it stands.
func (list Addresses) each(p place, f func(p place, a Address)) {
	for i, a := range list {
		at := p.item(i)
		if !at.given() {
			at = p // it is the only one
		}
		f(at, a)
	}
}

// checkOwners refuses two owners of one address, or of one directory of a mount.
func (w written) checkOwners(p place, owners map[string]string) {
	each := func(p place, what, name string) {
		if other, taken := owners[name]; taken {
			p.fault("%s is the %s of %s already", quoted(name), what, other)
		} else if name != "" {
			owners[name] = p.keys[0].String()
		}
	}
	address := func(p place, a Address) {
		if a.IP != "" {
			each(p, "address", a.IP.Addr())
		}
	}
	w.Address.each(p.key("address"), address)
	for i, process := range w.Processes {
		at := p.key("processes").item(i)
		if process.Address != nil {
			address(at.key("address"), *process.Address)
		}
		if process.Mount != nil {
			each(at.key("mount").key("directory"), "directory", process.Mount.Directory)
		}
	}
}
