package web

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"understudy/supervisor/connections"
	"understudy/supervisor/keyfile"
)

// names are what this side may be called in a Host header. A site that has its own name lead to this address (DNS rebinding) has a
// browser ask under that name, and would read what only those in this network may.
type names struct {
	own  []string
	host string                   // of the machine
	full func() ([]string, error) // the machine's names with their domains
}

func newNames(cfg Config) *names {
	listen, _, _ := net.SplitHostPort(cfg.Listen)
	n := &names{host: plain(cfg.Host), full: keyfile.Cached(func() ([]string, error) { return fullNames(cfg.Host) }, nil)}
	for _, name := range append([]string{"localhost", listen, cfg.Node, cfg.Host}, cfg.Hosts...) {
		if name = plain(name); name != "" {
			n.own = append(n.own, name)
		}
	}
	return n
}

// plain is a name without what does not tell it from others.
func plain(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// are tells whether a Host header names this side. No browser leaves it empty.
func (n *names) are(header string) bool {
	host := header
	if h, _, err := net.SplitHostPort(header); err == nil {
		host = h
	}
	host = plain(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	if _, err := netip.ParseAddr(host); err == nil || host == "" || slices.Contains(n.own, host) {
		return true
	}
	if n.host == "" || !strings.HasPrefix(host, n.host+".") { // only then is it worth a look
		return false
	}
	full, err := n.full()
	return err == nil && slices.Contains(full, host)
}

// fullNames are a machine's names with their domains, as its addresses are called.
func fullNames(host string) (all []string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return nil, err
	}
	for _, address := range addresses {
		called, err := net.DefaultResolver.LookupAddr(ctx, address)
		if err != nil {
			continue
		}
		for _, name := range called {
			if name = plain(name); strings.HasPrefix(name, plain(host)+".") {
				all = append(all, name)
			}
		}
	}
	return all, nil
}

// addressed serves those who call this side by one of its names.
func (a *access) addressed(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if a.names.are(r.Host) {
			h(w, r)
			return
		}
		a.cfg.Board.metrics.unserved.WithLabelValues("unknown host").Inc()
		host := r.Host[:min(len(r.Host), longestName)]
		a.misnamed.Say(connections.Address(r.RemoteAddr), "host", host)
		refuse(w, http.StatusMisdirectedRequest,
			"this is not known to be "+host+": add that name to http.hosts in the config, or ask by an IP address")
	}
}
