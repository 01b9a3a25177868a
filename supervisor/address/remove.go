package address

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Remover removes addresses over a netlink socket that it has opened before they exist: it starts no process and opens no file.
type Remover struct{ handle *netlink.Handle }

// NewRemover opens the socket.
func NewRemover() (*Remover, error) {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open a netlink socket: %w", err)
	}
	return &Remover{h}, nil
}

// Close closes the socket.
func (r *Remover) Close() { r.handle.Close() }

// Remove removes an address; nil: it is not there.
func (r *Remover) Remove(a Address) error {
	found, err := a.found(r.handle)
	if err != nil {
		return err
	}
	for _, have := range found {
		if err := r.handle.AddrDel(nil, &have); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) && !errors.Is(err, unix.ENODEV) {
			return fmt.Errorf("remove %v: %w", a.Prefix, err)
		}
	}
	return nil
}

// Down removes the address; nil: it is not there.
func (a Address) Down() error {
	r, err := NewRemover()
	if err != nil {
		return err
	}
	defer r.Close()
	a.reset()
	return r.Remove(a)
}
