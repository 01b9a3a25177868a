package address

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// wire sends and receives on a device what an address's neighbours understand.
type wire struct {
	fd       int
	file     *os.File // of fd
	index    int
	protocol uint16 // in network order
}

func (a Address) open(link netlink.Link) (*wire, error) {
	protocol := uint16(unix.ETH_P_ARP)
	if a.Addr().Is6() {
		protocol = unix.ETH_P_IPV6
	}
	w := &wire{index: link.Attrs().Index, protocol: protocol<<8 | protocol>>8}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0) // 0: it receives nothing
	if err != nil {
		return nil, fmt.Errorf("open a packet socket on %s: %w%s", link.Attrs().Name, err, hint(err))
	}
	w.fd, w.file = fd, os.NewFile(uintptr(fd), "packet socket")
	return w, nil
}

// advertisements lets neighbour advertisements through, so that other IPv6 packets do not fill the socket's buffer.
var advertisements = []unix.SockFilter{
	{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: 6},
	{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: icmp6, Jf: 3},
	{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: ipv6Len},
	{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: advertisement, Jf: 1},
	{Code: unix.BPF_RET | unix.BPF_K, K: 0xffff},
	{Code: unix.BPF_RET | unix.BPF_K},
}

// listen has the wire receive, too.
func (w *wire) listen(a Address) error {
	if a.Addr().Is6() {
		filter := &unix.SockFprog{Len: uint16(len(advertisements)), Filter: &advertisements[0]}
		if err := unix.SetsockoptSockFprog(w.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, filter); err != nil {
			return err
		}
	}
	return unix.Bind(w.fd, &unix.SockaddrLinklayer{Protocol: w.protocol, Ifindex: w.index})
}

func (w *wire) send(p packet) error {
	to := &unix.SockaddrLinklayer{Protocol: w.protocol, Ifindex: w.index, Halen: macLen}
	copy(to.Addr[:], p.to)
	return unix.Sendto(w.fd, p.data, 0, to)
}

const (
	answerWithin = 100 * time.Millisecond
	askEvery     = 35 * time.Millisecond
)

// ask fails if another machine answers for the address until patience is over.
func (a Address) ask(ctx context.Context, link netlink.Link, patience time.Duration) error {
	if !hasNeighbours(link) {
		return nil
	}
	w, err := a.open(link)
	if err != nil {
		return err
	}
	defer w.file.Close()
	if err := w.listen(a); err != nil {
		return fmt.Errorf("listen on %s: %w", link.Attrs().Name, err)
	}
	defer context.AfterFunc(ctx, func() { w.file.Close() })()
	for late := time.Now().Add(patience); ; {
		holder, err := a.askOnce(w, link)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return fmt.Errorf("ask on %s who has %v: %w", link.Attrs().Name, a.Addr(), err)
		case holder == nil:
			return nil
		case time.Now().After(late):
			return fmt.Errorf("%v is in use by %v", a.Addr(), holder)
		}
		time.Sleep(askEvery)
	}
}

// askOnce is who answers for the address; nil: no other machine.
func (a Address) askOnce(w *wire, link netlink.Link) (net.HardwareAddr, error) {
	own, err := ownMACs()
	if err != nil {
		return nil, err
	}
	p := make([]byte, 2048)
	over := time.Now().Add(answerWithin)
	for time.Now().Before(over) {
		if err := w.send(a.question(link.Attrs().HardwareAddr)); err != nil {
			return nil, err
		}
		until := time.Now().Add(askEvery)
		if until.After(over) {
			until = over
		}
		if err := w.file.SetReadDeadline(until); err != nil {
			return nil, err
		}
		for {
			n, err := w.file.Read(p)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			if err != nil {
				return nil, err
			}
			if mac := a.holder(p[:n]); mac != nil && !own[mac.String()] {
				return append(net.HardwareAddr{}, mac...), nil
			}
		}
	}
	return nil, nil
}

func ownMACs() (map[string]bool, error) {
	links, err := whole(netlink.LinkList)
	if err != nil {
		return nil, fmt.Errorf("list devices: %w", err)
	}
	own := map[string]bool{}
	for _, link := range links {
		own[link.Attrs().HardwareAddr.String()] = true
	}
	return own, nil
}
