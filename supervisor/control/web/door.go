package web

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// door lets connections in. When there are too many, a connection without a request makes room for a new one: a client
// that asks gets an answer, and one that only holds a connection loses it.
type door struct {
	net.Listener
	crowd *crowd
	told  func(from, what string) // is told of each connection that was closed for want of room
}

const (
	refusedOne = "refused"
	evictedOne = "closed for a newer one"
)

func (d *door) Accept() (net.Conn, error) {
	for {
		c, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		g := &guest{from: origin(c.RemoteAddr().String()), leave: func() { _ = c.Close() }}
		out, ok := d.crowd.enter(g)
		if !ok {
			d.told(g.from, refusedOne)
			_ = c.Close()
			continue
		}
		if out != nil {
			d.told(out.from, evictedOne)
			out.leave()
		}
		return &visitor{Conn: c, crowd: d.crowd, guest: g}, nil
	}
}

// visitor is a connection that was let in.
type visitor struct {
	net.Conn
	crowd *crowd
	guest *guest
	once  sync.Once
}

func (v *visitor) Close() error {
	v.once.Do(func() { v.crowd.exit(v.guest) })
	return v.Conn.Close()
}

type visitorKey struct{}

// withVisitor remembers which connection a request came over.
func withVisitor(ctx context.Context, c net.Conn) context.Context {
	if secured, ok := c.(*tls.Conn); ok {
		c = secured.NetConn()
	}
	if v, ok := c.(*visitor); ok {
		return context.WithValue(ctx, visitorKey{}, v)
	}
	return ctx
}

// attended keeps a connection while a request is looked after, and no longer: neither headers that come slowly nor an answer that
// nobody fetches keep it.
func attended(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if v, ok := r.Context().Value(visitorKey{}).(*visitor); ok {
			v.crowd.busy(v.guest)
			defer v.crowd.idle(v.guest)
		}
		h(w, r)
	}
}

// within attends to those that a crowd has room for: what takes its time, or as long as the client wants, may not take all connections.
// Nor does a request that still waits for its turn here keep its connection: on a busy machine that would be all of them.
func (s *Server) within(c *crowd, h http.HandlerFunc) http.HandlerFunc {
	h = attended(h)
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		g := &guest{from: origin(r.RemoteAddr), leave: cancel}
		if v, ok := r.Context().Value(visitorKey{}).(*visitor); ok {
			g.leave = func() { _ = v.Close(); cancel() } // it takes no room from now on, however long its goroutine takes to end
		}
		out, ok := c.enter(g)
		if !ok {
			s.cfg.Board.metrics.unserved.WithLabelValues("busy").Inc()
			w.Header().Set("Retry-After", "10")
			refuse(w, http.StatusServiceUnavailable, "too many such requests at a time")
			return
		}
		defer c.exit(g)
		if out != nil {
			s.turnedAway(out.from, evictedOne)
			out.leave()
		}
		h(w, r.WithContext(ctx))
	}
}

// turnedAway counts and logs a connection that was closed for want of room.
func (s *Server) turnedAway(from, what string) {
	if what == refusedOne {
		s.cfg.Board.metrics.refused.Inc()
	} else {
		s.cfg.Board.metrics.evicted.Inc()
	}
	s.crowded.Say(from, "what", what)
}
