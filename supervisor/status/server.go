package status

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// What clients are allowed. Checks of load balancers are short and come often; watchers are few and stay.
const (
	largestHeader  = 16 << 10
	largestBody    = 4 << 10
	headerPatience = 5 * time.Second
	writePatience  = 15 * time.Second // for an answer as a whole, or one event
	idlePatience   = 75 * time.Second
	mostConns      = 1024
	mostOfOne      = mostConns / 2 // of one address: a load balancer's checks find room beside it
	mostWatchers   = 512
)

// Server serves one Config.
type Server struct {
	cfg     Config
	cluster *reader[[]byte]
	history *reader[[]Activation]
	stream  *stream
	orders  chan func(context.Context) // each is called once, by whom takes it
}

// New makes a Server of a Config whose Board and Cluster are set.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg, orders: make(chan func(context.Context))}
	s.cluster = newReader(freshness, func(ctx context.Context, _ string) ([]byte, error) { return cfg.Cluster.Status(ctx) })
	s.history = newReader(time.Second, cfg.Cluster.History)
	s.stream = newStream()
	cfg.Board.metrics.registry.MustRegister(gauges{cfg.Board, cfg.Node, cfg.Version}, prometheus.NewGaugeFunc(
		prometheus.GaugeOpts{Name: "understudy_http_watchers", Help: "Clients that follow the events."},
		func() float64 { return float64(s.stream.watchers.Load()) }))
	return s
}

// freshness is how old the cluster's status may be that somebody is shown.
const freshness = 250 * time.Millisecond

// relisten is how long to wait before an address that cannot be had is tried again.
const relisten = 5 * time.Second

// Run serves until ctx ends. An address that cannot be had is tried again: the services do not depend on it.
func (s *Server) Run(ctx context.Context) error {
	for {
		var lc net.ListenConfig
		l, err := lc.Listen(ctx, "tcp", s.cfg.Listen)
		if err == nil {
			s.cfg.Logger.Info("serving HTTP", "address", l.Addr().String(), "writable", s.cfg.Token != nil)
			err = s.Serve(ctx, l)
		}
		if ctx.Err() != nil {
			return nil
		}
		s.cfg.Logger.Error("cannot serve HTTP, trying again", "listen", s.cfg.Listen, "error", err, "in", relisten)
		select {
		case <-time.After(relisten):
		case <-ctx.Done():
			return nil
		}
	}
}

// Serve serves on l, which it closes, until ctx ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer s.cfg.Cluster.Close()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for _, run := range []func(context.Context){s.cluster.run, s.history.run, s.follow, s.measure, s.obey} {
		wg.Go(func() { run(ctx) })
	}
	server := &http.Server{
		Handler: s.routes(), MaxHeaderBytes: largestHeader, ReadHeaderTimeout: headerPatience, ReadTimeout: 2 * headerPatience,
		WriteTimeout: writePatience, IdleTimeout: idlePatience,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    s.cfg.Logger.StandardLogger(nil),
	}
	wg.Go(func() {
		<-ctx.Done()
		_ = server.Close() // nobody is waited for
	})
	err := server.Serve(&limited{Listener: l, free: make(chan struct{}, mostConns), of: map[string]int{}, refused: s.cfg.Board.metrics.refused})
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve HTTP: %w", err)
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", s.healthz)
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.HandleFunc("GET /active/{service}", s.active)
	mux.HandleFunc("GET /api/v1/status", s.showStatus)
	mux.HandleFunc("GET /api/v1/history", s.showHistory)
	mux.HandleFunc("GET /api/v1/events", s.watch)
	mux.HandleFunc("POST /api/v1/token", s.token)
	mux.HandleFunc("POST /api/v1/services/{service}/{order}", s.order)
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.cfg.Board.metrics.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	mux.Handle("GET /{$}", newPage())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		r.Body = http.MaxBytesReader(w, r.Body, largestBody)
		mux.ServeHTTP(w, r)
	})
}

// limited closes connections at once when there are too many.
type limited struct {
	net.Listener
	free    chan struct{}
	refused prometheus.Counter

	mu sync.Mutex     // guards of
	of map[string]int // connections, by address
}

func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from := c.RemoteAddr().String()
		if host, _, err := net.SplitHostPort(from); err == nil {
			from = host
		}
		if give := l.take(from); give != nil {
			return &counted{Conn: c, give: give}, nil
		}
		l.refused.Inc()
		_ = c.Close()
	}
}

// take gives a place to a connection from an address, and tells how to give it back; nil: there is none.
func (l *limited) take(from string) (give func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of[from] >= mostOfOne {
		return nil
	}
	select {
	case l.free <- struct{}{}:
	default:
		return nil
	}
	l.of[from]++
	return func() {
		<-l.free
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.of[from]--; l.of[from] == 0 {
			delete(l.of, from)
		}
	}
}

// counted gives its place back when it is closed.
type counted struct {
	net.Conn
	once sync.Once
	give func()
}

func (c *counted) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.give)
	return err
}
