package web

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"

	"understudy/supervisor/connections"
)

// listener gives each connection a place, of all or in the share of the checks: /active, /healthz and /readyz. A connection that finds
// all places taken comes into that share, where one check is answered, and nothing else. There the oldest is closed for the newest.
type listener struct {
	net.Listener
	places *connections.Limiter
	checks *connections.Queue
	closed func(address string) // is told of each connection that was closed for a newer one
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	release, ok := l.places.Take(address(c))
	if ok {
		return &conn{Conn: c, release: release}, nil
	}
	remove, closed := l.checks.Add(c, mostChecks)
	if closed != nil {
		l.closed(address(closed))
	}
	return &conn{Conn: c, release: remove, checksOnly: true}, nil
}

func address(c net.Conn) string { return connections.Address(c.RemoteAddr().String()) }

// conn is a connection in its place.
type conn struct {
	net.Conn
	release    func()
	checksOnly bool
}

func (c *conn) Close() error {
	c.release()
	return c.Conn.Close()
}

type checksOnlyKey struct{}

// withConn remembers for its requests whether a connection is for checks only.
func withConn(ctx context.Context, c net.Conn) context.Context {
	if secured, ok := c.(*tls.Conn); ok {
		c = secured.NetConn()
	}
	own, ok := c.(*conn)
	return context.WithValue(ctx, checksOnlyKey{}, ok && own.checksOnly)
}

func checksOnly(r *http.Request) bool {
	only, _ := r.Context().Value(checksOnlyKey{}).(bool)
	return only
}

// limited serves requests whose answers take memory until the client has read them: so many at a time.
func (s *Server) limited(places *connections.Limiter, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		release, ok := places.Take(connections.Address(r.RemoteAddr))
		if !ok {
			s.busy(w, r, "too many such requests")
			return
		}
		defer release()
		h(w, r)
	}
}

func (s *Server) busy(w http.ResponseWriter, r *http.Request, why string) {
	s.cfg.Board.metrics.unserved.WithLabelValues("busy").Inc()
	s.tooMany.Say(connections.Address(r.RemoteAddr), "refused", why)
	w.Header().Set("Retry-After", "10")
	refuse(w, http.StatusServiceUnavailable, why+" at a time, of this address or of all")
}

// closed counts and logs a connection that was closed for a newer one.
func (s *Server) closed(address string) {
	s.cfg.Board.metrics.evicted.Inc()
	s.tooMany.Say(address, "closed", "for a newer connection")
}
