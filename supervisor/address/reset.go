package address

import (
	"encoding/binary"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// established is TCP_ESTABLISHED of the kernel.
const established = 1

// reset resets the connections to the address, while its program runs on. A client that waits for an answer there would wait until its own
// timeout: nothing of a connection can be sent any more once its address is gone. Kernels without SOCK_DESTROY cannot do that.
func (a Address) reset() {
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} { // a server for both has IPv4 clients in IPv6 sockets
		all, err := netlink.SocketDiagTCP(family)
		if err != nil {
			continue
		}
		for _, s := range all {
			if ip, ok := netip.AddrFromSlice(s.ID.Source); ok && ip.Unmap() == a.Addr() && s.State == established {
				req := nl.NewNetlinkRequest(nl.SOCK_DESTROY, unix.NLM_F_ACK)
				req.AddRawData(diagOf(s))
				_, _ = req.Execute(unix.NETLINK_INET_DIAG, 0)
			}
		}
	}
}

// diagOf names a socket as struct inet_diag_req_v2 of the kernel does.
func diagOf(s *netlink.Socket) []byte {
	to := make([]byte, 0, 56)
	to = append(to, s.Family, unix.IPPROTO_TCP, 0, 0)
	to = binary.NativeEndian.AppendUint32(to, 1<<established)
	to = binary.BigEndian.AppendUint16(to, s.ID.SourcePort)
	to = binary.BigEndian.AppendUint16(to, s.ID.DestinationPort)
	for _, ip := range []net.IP{s.ID.Source, s.ID.Destination} {
		if s.Family == unix.AF_INET {
			ip = ip.To4()
		}
		to = append(append(to, ip...), make([]byte, net.IPv6len-len(ip))...)
	}
	for _, n := range []uint32{s.ID.Interface, s.ID.Cookie[0], s.ID.Cookie[1]} {
		to = binary.NativeEndian.AppendUint32(to, n)
	}
	return to
}
