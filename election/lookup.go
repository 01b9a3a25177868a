package election

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Resolver keeps the addresses of servers, as their names were looked up
// last: where the name server is away, or slow, no dial waits for it.
type Resolver struct {
	Lookup func(ctx context.Context, host string) ([]string, error)
	Dial   DialFunc // of an address

	mu  sync.Mutex // guards the fields below, and those of each name
	all map[string]*name
}

// name is what is known of one.
type name struct {
	addresses []string      // of the newest answer, the one that was reached last first
	err       error         // why the newest look-up had none
	looking   chan struct{} // closed at the end of the look-up that is under way; nil: there is none
}

// resolved are the names of this process.
var resolved = &Resolver{Lookup: net.DefaultResolver.LookupHost, Dial: dialTCP}

// lookupPatience is how long one look-up may take. Few resolvers take longer.
const lookupPatience = 30 * time.Second

// dial opens a connection to a server by the addresses that are known. Beside it runs a look-up, and addresses that are new are dialed as
// well. It is waited for only if none are known.
func (n *Resolver) dial(ctx context.Context, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return n.Dial(ctx, address)
	}
	type dialed struct {
		conn net.Conn
		err  error
	}
	results, over, under := make(chan dialed), make(chan struct{}), 0
	defer close(over)
	try := func(addresses []string) {
		under++
		go func() {
			conn, err := n.each(ctx, host, port, addresses)
			select {
			case results <- dialed{conn, err}:
			case <-over: // another one was quicker
				if err == nil {
					_ = conn.Close()
				}
			}
		}()
	}
	known, looking := n.look(host)
	if len(known) > 0 {
		try(known)
	}
	var failed []error
	for under > 0 || len(known) == 0 && looking != nil {
		select {
		case d := <-results:
			under--
			if d.err == nil {
				return d.conn, nil
			}
			failed = append(failed, d.err)
		case <-looking:
			looking = nil
			now, err := n.get(host)
			now = slices.DeleteFunc(now, func(ip string) bool { return slices.Contains(known, ip) })
			if len(now) > 0 {
				try(now)
			} else if err != nil {
				failed = append(failed, err)
			}
		case <-ctx.Done():
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("%s: %w", host, cmp.Or(errors.Join(failed...), ctx.Err()))}
		}
	}
	return nil, errors.Join(failed...)
}

// each dials addresses one after the other.
func (n *Resolver) each(ctx context.Context, host, port string, addresses []string) (net.Conn, error) {
	var failed []error
	for i, ip := range addresses {
		conn, err := n.dialIP(ctx, ip, port, len(addresses)-i)
		if err == nil {
			n.reached(host, ip)
			return conn, nil
		}
		failed = append(failed, err)
	}
	return nil, errors.Join(failed...)
}

// dialIP takes its part of the time that is left for so many addresses.
func (n *Resolver) dialIP(ctx context.Context, ip, port string, of int) (net.Conn, error) {
	if end, ok := ctx.Deadline(); ok && of > 1 {
		part, cancel := context.WithTimeout(ctx, time.Until(end)/time.Duration(of))
		defer cancel()
		ctx = part
	}
	return n.Dial(ctx, net.JoinHostPort(ip, port))
}

func dialTCP(ctx context.Context, address string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}

// of finds a name. mu is held.
func (n *Resolver) of(host string) *name {
	if n.all == nil {
		n.all = map[string]*name{}
	}
	if n.all[host] == nil {
		n.all[host] = &name{}
	}
	return n.all[host]
}

// look starts a look-up, unless one is under way, and returns what is known before it ends.
func (n *Resolver) look(host string) (addresses []string, looking <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	one := n.of(host)
	if one.looking == nil {
		one.looking = make(chan struct{})
		go n.ask(host, one)
	}
	return slices.Clone(one.addresses), one.looking
}

// ask takes over an answer. Where there is none, what was known stays.
func (n *Resolver) ask(host string, one *name) {
	ctx, enough := context.WithTimeout(context.Background(), lookupPatience)
	defer enough()
	addresses, err := n.Lookup(ctx, host)
	if err == nil && len(addresses) == 0 {
		err = &net.DNSError{Err: "it has no address", Name: host}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	one.err = err
	if err == nil {
		last := one.addresses
		one.addresses = slices.Clone(addresses)
		if len(last) > 0 {
			one.prefer(last[0])
		}
	}
	close(one.looking)
	one.looking = nil
}

// prefer puts an address first, if it is one of the name's.
func (o *name) prefer(ip string) {
	if i := slices.Index(o.addresses, ip); i > 0 {
		o.addresses = slices.Insert(slices.Delete(o.addresses, i, i+1), 0, ip)
	}
}

func (n *Resolver) reached(host, ip string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.of(host).prefer(ip)
}

func (n *Resolver) get(host string) ([]string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	one := n.of(host)
	return slices.Clone(one.addresses), one.err
}

// known is what another process needs to dial servers without a name server.
func (n *Resolver) known(servers []string) map[string][]string {
	all := map[string][]string{}
	for _, address := range servers {
		if host, _, err := net.SplitHostPort(address); err == nil {
			if addresses, _ := n.get(host); len(addresses) > 0 {
				all[host] = addresses
			}
		}
	}
	return all
}

// keep takes over what another process knew.
func (n *Resolver) keep(all map[string][]string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for host, addresses := range all {
		if one := n.of(host); len(one.addresses) == 0 {
			one.addresses = slices.Clone(addresses)
		}
	}
}
