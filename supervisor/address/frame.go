package address

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
)

// What is sent has no Ethernet header: the kernel writes it, for VLANs, too.

const macLen = 6

var (
	everyone = net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	allNodes = netip.MustParseAddr("ff02::1")
)

const (
	arpRequest = 1
	arpReply   = 2
)

// arp is an ARP packet for IPv4 over Ethernet.
func arp(operation uint16, mac net.HardwareAddr, sender netip.Addr, targetMAC net.HardwareAddr, target netip.Addr) []byte {
	p := []byte{0, 1, 8, 0, macLen, 4}
	p = binary.BigEndian.AppendUint16(p, operation)
	p = append(append(p, mac...), sender.AsSlice()...)
	return append(append(p, targetMAC...), target.AsSlice()...)
}

// arpSender is who an ARP packet says has the address.
func arpSender(p []byte, ip netip.Addr) net.HardwareAddr {
	if len(p) < 28 || !bytes.Equal(p[:6], []byte{0, 1, 8, 0, macLen, 4}) || !bytes.Equal(p[14:18], ip.AsSlice()) {
		return nil
	}
	return p[8:14]
}

const (
	icmp6             = 58
	solicitation      = 135
	advertisement     = 136
	sourceLinkLayer   = 1
	targetLinkLayer   = 2
	overrideFlag      = 0x20
	ipv6Len, neighLen = 40, 24 // of the headers, and of a message without options
)

// neighbour is an IPv6 packet with a neighbour solicitation or advertisement; mac nil: without the option that tells it.
func neighbour(kind byte, from, to, target netip.Addr, mac net.HardwareAddr) []byte {
	m := make([]byte, 8, neighLen+8)
	m[0] = kind
	option := byte(sourceLinkLayer)
	if kind == advertisement {
		m[4], option = overrideFlag, targetLinkLayer
	}
	m = append(m, target.AsSlice()...)
	if mac != nil {
		m = append(append(m, option, 1), mac...)
	}
	p := []byte{0x60, 0, 0, 0, 0, byte(len(m)), icmp6, 255} // routers do not forward it: others trust it for its hop limit
	p = append(append(p, from.AsSlice()...), to.AsSlice()...)
	binary.BigEndian.PutUint16(m[2:], checksum(p[8:ipv6Len], []byte{0, 0, 0, byte(len(m)), 0, 0, 0, icmp6}, m))
	return append(p, m...)
}

// checksum is that of ICMPv6, over parts of an even length each.
func checksum(parts ...[]byte) uint16 {
	sum := uint32(0)
	for _, part := range parts {
		for ; len(part) > 0; part = part[2:] {
			sum += uint32(binary.BigEndian.Uint16(part))
		}
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}

// advertiser is who an IPv6 packet says has the address.
func advertiser(p []byte, ip netip.Addr) net.HardwareAddr {
	if len(p) < ipv6Len+neighLen || p[6] != icmp6 || p[7] != 255 || p[ipv6Len] != advertisement ||
		!bytes.Equal(p[ipv6Len+8:ipv6Len+neighLen], ip.AsSlice()) {
		return nil
	}
	for o := p[ipv6Len+neighLen:]; len(o) >= 8 && o[1] > 0 && len(o) >= int(o[1])*8; o = o[int(o[1])*8:] {
		if o[0] == targetLinkLayer {
			return o[2:8]
		}
	}
	return make(net.HardwareAddr, macLen) // it does not say
}

// solicited is the group of those that have an address like this one.
func solicited(ip netip.Addr) netip.Addr {
	all, last := netip.MustParseAddr("ff02::1:ff00:0").As16(), ip.As16()
	copy(all[13:], last[13:])
	return netip.AddrFrom16(all)
}

// groupMAC is where packets to an IPv6 group are sent.
func groupMAC(group netip.Addr) net.HardwareAddr {
	last := group.As16()
	return append(net.HardwareAddr{0x33, 0x33}, last[12:]...)
}

// packet is one to be sent.
type packet struct {
	to   net.HardwareAddr
	data []byte
}

func toGroup(kind byte, from, group, target netip.Addr, mac net.HardwareAddr) packet {
	return packet{groupMAC(group), neighbour(kind, from, group, target, mac)}
}

// question asks who has the address, as RFC 5227 and RFC 4862 do: nobody learns a wrong one from it.
func (a Address) question(mac net.HardwareAddr) packet {
	if ip := a.Addr(); ip.Is6() {
		return toGroup(solicitation, netip.IPv6Unspecified(), solicited(ip), ip, nil)
	}
	return packet{everyone, arp(arpRequest, mac, netip.IPv4Unspecified(), make(net.HardwareAddr, macLen), a.Addr())}
}

// announcement tells the neighbours who has the address: some believe requests only, some replies only.
func (a Address) announcement(mac net.HardwareAddr) []packet {
	ip := a.Addr()
	if ip.Is6() {
		return []packet{toGroup(advertisement, ip, allNodes, ip, mac)}
	}
	return []packet{
		{everyone, arp(arpRequest, mac, ip, make(net.HardwareAddr, macLen), ip)},
		{everyone, arp(arpReply, mac, ip, mac, ip)},
	}
}

// greeting asks the gateway for its MAC, which tells ours to those who ignore announcements.
func (a Address) greeting(mac net.HardwareAddr, gateway netip.Addr) packet {
	if a.Addr().Is6() {
		return toGroup(solicitation, a.Addr(), solicited(gateway), gateway, mac)
	}
	return packet{everyone, arp(arpRequest, mac, a.Addr(), make(net.HardwareAddr, macLen), gateway)}
}

// holder is who a packet says has the address.
func (a Address) holder(p []byte) net.HardwareAddr {
	if a.Addr().Is6() {
		return advertiser(p, a.Addr())
	}
	return arpSender(p, a.Addr())
}
