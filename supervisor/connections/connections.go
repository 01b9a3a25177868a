// Package connections bounds what clients of a listener can hold.
//
// A Limiter has places, so many in all and so many for each client address: a client that takes all it gets leaves the rest to other
// addresses, and a client that gets none is refused. A Queue refuses no connection. It closes the oldest one for a new one, so that
// connections held open keep no client out, from however many addresses they come. It suits conversations that are short: one that
// lasts is closed after as many newer ones as there are places.
package connections

import (
	"net"
	"net/netip"
	"slices"
	"sync"
)

// Limiter has places for clients.
type Limiter struct {
	All, Each int // places in all, and for one address

	mu    sync.Mutex // guards the fields below
	taken int
	of    map[string]int // by address
}

// Take takes a place for a client's address, and reports whether there was one. release gives it back, and may be called again.
func (l *Limiter) Take(address string) (release func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taken >= l.All || l.of[address] >= l.Each {
		return nil, false
	}
	if l.of == nil {
		l.of = map[string]int{}
	}
	l.taken++
	l.of[address]++
	return sync.OnceFunc(func() { l.release(address) }), true
}

func (l *Limiter) release(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken--
	if l.of[address]--; l.of[address] == 0 {
		delete(l.of, address)
	}
}

// Queue is open connections, the oldest first. The zero value is empty.
type Queue struct {
	mu    sync.Mutex // guards conns
	conns []net.Conn
}

// Add adds a connection, and closes the oldest one if there were most already; closed is that one. remove takes c out, and may be
// called again.
func (q *Queue) Add(c net.Conn, most int) (remove func(), closed net.Conn) {
	q.mu.Lock()
	if len(q.conns) >= most {
		closed = q.conns[0]
		q.conns = slices.Delete(q.conns, 0, 1)
	}
	q.conns = append(q.conns, c)
	q.mu.Unlock()
	if closed != nil {
		_ = closed.Close()
	}
	return func() { q.remove(c) }, closed
}

func (q *Queue) remove(c net.Conn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.conns = slices.DeleteFunc(q.conns, func(other net.Conn) bool { return other == c })
}

// Address is what a client at host:port counts as: its IPv4 address, or the /64 of its IPv6 address, since one host has a whole /64.
func Address(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote
	}
	ip := at.Addr().Unmap().WithZone("")
	if ip.Is4() {
		return ip.String()
	}
	return netip.PrefixFrom(ip, 64).Masked().String()
}
