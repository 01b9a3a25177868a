package address

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/vishvananda/netlink"
)

// contestEvery is how often another machine that claims the address is answered at most: two that answer each other must not fill the
// network.
const contestEvery = 10 * time.Second

// contest tells when another machine claims the address, and tells the neighbours again who has it, until the wire is closed. It is no
// reason to stop: the lock has decided who has the address. A claim that comes too soon is answered once it may be.
func (k *Keeper) contest() {
	p := make([]byte, 2048)
	var next time.Time
	var due net.HardwareAddr // whose claim came before next
	for {
		n, err := k.wire.file.Read(p)
		mac := due
		switch {
		case errors.Is(err, os.ErrClosed):
			return
		case err == nil:
			mac = k.holder(p[:n])
		case !errors.Is(err, os.ErrDeadlineExceeded): // the device is down
			time.Sleep(askEvery)
			continue
		}
		if mac == nil {
			continue
		}
		if time.Now().Before(next) {
			due = mac
			_ = k.wire.file.SetReadDeadline(next) // else the next claim is answered
			continue
		}
		_ = k.wire.file.SetReadDeadline(time.Time{})
		own, err := ownMACs()
		if err != nil || own[mac.String()] {
			continue
		}
		link, err := netlink.LinkByIndex(k.wire.index)
		if err != nil {
			continue
		}
		next = time.Now().Add(contestEvery)
		k.Say(fmt.Sprintf("another machine claims %v: %v; announcing it again", k.Addr(), mac))
		if k.Claimed != nil {
			k.Claimed()
		}
		for _, a := range k.announcement(link.Attrs().HardwareAddr) {
			_ = k.wire.send(a) // announce says what is wrong
		}
	}
}
