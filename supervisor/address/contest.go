package address

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/vishvananda/netlink"
)

// contestEvery is how often another machine that claims the address is answered at most: two that answer each other must not fill the
// network.
const contestEvery = 10 * time.Second

// contest tells when another machine claims the address, and tells the neighbours again who has it, until the wire is closed. It is no
// reason to stop: the lock has decided who has the address.
func (k *Keeper) contest() {
	p := make([]byte, 2048)
	var next time.Time
	for {
		n, err := k.wire.file.Read(p)
		if errors.Is(err, os.ErrClosed) {
			return
		}
		if err != nil { // the device is down
			time.Sleep(askEvery)
			continue
		}
		mac := k.holder(p[:n])
		if mac == nil || time.Now().Before(next) {
			continue
		}
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
