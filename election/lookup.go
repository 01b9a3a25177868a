package election

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Resolver keeps the addresses of servers, as their names were looked up last: where the name server is away, or slow, a dial waits for it
// only if none are known.
type Resolver struct {
	Lookup func(ctx context.Context, host string) ([]string, error)
	Dial   DialFunc // of an address

	mu  sync.Mutex // guards all
	all map[string]name
}

// name is what is known of one.
type name struct {
	addresses []string // of the newest answer
	err       error    // why the newest look-up had none
}

// resolved are the names of this process.
var resolved = &Resolver{Lookup: net.DefaultResolver.LookupHost, Dial: dialTCP}

const (
	lookupPatience = 30 * time.Second       // with one look-up. Few resolvers take longer
	namePatience   = 100 * time.Millisecond // of a dial that knows addresses already
)

// dial opens a connection to a server. A look-up that takes longer than the dial goes on, for the next one.
func (n *Resolver) dial(ctx context.Context, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return n.Dial(ctx, address)
	}
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		n.look(host)
	}()
	var enough <-chan time.Time
	if known, _ := n.get(host); len(known) > 0 {
		enough = time.After(namePatience)
	}
	select {
	case <-looked:
	case <-enough:
	case <-ctx.Done():
		_, err := n.get(host)
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("%s: %w", host, cmp.Or(err, ctx.Err()))}
	}
	addresses, err := n.get(host)
	if len(addresses) == 0 {
		return nil, err
	}
	var failed []error
	for i, ip := range addresses {
		conn, err := n.dialIP(ctx, ip, port, len(addresses)-i)
		if err == nil {
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

// look looks a name up. Where there is no answer, what was known stays.
func (n *Resolver) look(host string) {
	ctx, enough := context.WithTimeout(context.Background(), lookupPatience)
	defer enough()
	addresses, err := n.Lookup(ctx, host)
	if err == nil && len(addresses) == 0 {
		err = &net.DNSError{Err: "it has no address", Name: host}
	}
	if err != nil {
		addresses, _ = n.get(host)
	}
	n.note(host, name{addresses, err})
}

func (n *Resolver) note(host string, now name) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.all == nil {
		n.all = map[string]name{}
	}
	n.all[host] = now
}

func (n *Resolver) get(host string) ([]string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.all[host].addresses, n.all[host].err
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
	for host, addresses := range all {
		if known, _ := n.get(host); len(known) == 0 {
			n.note(host, name{addresses: addresses})
		}
	}
}
