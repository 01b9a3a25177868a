package web

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"understudy/supervisor/connections"
	"understudy/supervisor/control"
	"understudy/supervisor/wait"
)

// What clients are allowed. Checks of load balancers are short and come often; watchers are few and stay.
const (
	largestHeader  = 16 << 10
	largestBody    = 4 << 10
	headerPatience = 5 * time.Second
	writePatience  = 15 * time.Second // for an answer as a whole, or one event
	idlePatience   = 75 * time.Second
	mostConns      = 1024
	connsOfOne     = 120 // of one address: eight that take all they get leave places to others
	mostChecks     = 256 // connections beyond these limits, on which only checks are answered
	mostReads      = 256 // of status and history: an answer is in memory until it is taken
	readsOfOne     = 64
	mostScrapes    = 32
	scrapesOfOne   = 4
)

// Server serves one Config.
type Server struct {
	cfg     Config
	cluster *reader[control.Status]
	history *reader[[]control.HistoryEntry]
	stream  *stream
	clerk   *clerk
	access  *access

	places            connections.Limiter // of connections
	checks            connections.Queue   // connections without a place
	reading, scraping connections.Limiter

	complaints
}

// New makes a Server of a Config whose Board and Cluster are set.
func New(cfg Config) *Server {
	s := &Server{
		cfg: cfg, stream: newStream(), complaints: newComplaints(cfg.Logger),
		places:   connections.Limiter{All: mostConns, Each: connsOfOne},
		reading:  connections.Limiter{All: mostReads, Each: readsOfOne},
		scraping: connections.Limiter{All: mostScrapes, Each: scrapesOfOne},
	}
	s.cluster = newReader(freshness, func(ctx context.Context, _ string) (control.Status, error) { return cfg.Cluster.Status(ctx) })
	s.history = newReader(time.Second, func(ctx context.Context, service string) ([]control.HistoryEntry, error) {
		if service == "" {
			return cfg.Cluster.History(ctx)
		}
		return cfg.Cluster.History(ctx, service)
	})
	s.clerk = &clerk{cluster: cfg.Cluster, log: cfg.Logger, orders: make(chan func(context.Context)), changed: s.stream.poke}
	s.access = &access{cfg: &s.cfg, names: newNames(cfg), complaints: s.complaints}
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
			s.unserved(nil)
			s.cfg.Logger.Info("serving HTTP", "address", l.Addr().String(), "writable", s.cfg.Token != nil, "tls", s.cfg.Certificate != nil)
			err = s.Serve(ctx, l)
		}
		if ctx.Err() != nil {
			return nil
		}
		s.unserved(err)
		s.cfg.Logger.Error("cannot serve HTTP, trying again", "listen", s.cfg.Listen, "error", err, "in", relisten)
		if !wait.For(ctx, relisten) {
			return nil
		}
	}
}

// unserved tells why the address cannot be had; nil: it can.
func (s *Server) unserved(err error) {
	why := ""
	if err != nil {
		why = s.cfg.Listen + ": " + err.Error()
		if call, ok := errors.AsType[*os.SyscallError](err); ok {
			why = s.cfg.Listen + ": " + call.Err.Error()
		}
	}
	if s.cfg.Unserved != nil {
		s.cfg.Unserved(why)
	}
}

// Serve serves on l, which it closes, until ctx ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer s.cfg.Cluster.Close()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for _, run := range []func(context.Context){s.cluster.run, s.history.run, s.follow, failovers{s.cfg.Board, s.history}.run, s.clerk.obey,
		s.tellAll} {
		wg.Go(func() { run(ctx) })
	}
	server := &http.Server{
		Handler: s.routes(), MaxHeaderBytes: largestHeader, ReadHeaderTimeout: headerPatience, ReadTimeout: 2 * headerPatience,
		WriteTimeout: writePatience, IdleTimeout: idlePatience,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: withConn, TLSNextProto: plainly(),
		ErrorLog: log.New(mutter{s.muttered}, "", 0),
	}
	wg.Go(func() {
		<-ctx.Done()
		_ = server.Close() // nobody is waited for
	})
	err := server.Serve(s.secured(&listener{Listener: l, places: &s.places, checks: &s.checks, closed: s.closed}))
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve HTTP: %w", err)
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	// Load balancers ask these, under any name and without a token: they tell nobody anything that is worth the trouble.
	mux.HandleFunc("GET /healthz", s.healthz)
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.HandleFunc("GET /active/{service}", s.active)
	mux.HandleFunc("GET /follower/{service}", s.follower)
	mux.HandleFunc("GET /sync/{service}", s.sync)
	permitted := func(pattern string, may func(http.ResponseWriter, *http.Request) bool, h http.HandlerFunc) {
		mux.HandleFunc(pattern, s.access.addressed(func(w http.ResponseWriter, r *http.Request) {
			if checksOnly(r) {
				s.busy(w, r, "too many connections")
			} else if may(w, r) {
				h(w, r)
			}
		}))
	}
	look, change := s.access.mayLook, s.access.mayChange
	permitted("GET /api/v1/status", look, only(s.limited(&s.reading, s.showStatus)))
	permitted("GET /api/v1/history", look, only(s.limited(&s.reading, s.showHistory), "service", "number"))
	permitted("GET /api/v1/events", look, only(s.watch))
	permitted("GET /metrics", look,
		s.limited(&s.scraping, promhttp.HandlerFor(s.cfg.Board.metrics.registry, promhttp.HandlerOpts{}).ServeHTTP))
	permitted("GET /{$}", look, newPage().ServeHTTP)
	permitted("POST /api/v1/token", change, only(s.access.token))
	permitted("POST /api/v1/services/{service}/{order}", change, only(s.clerk.order))
	permitted("POST /api/v1/nodes/{node}/{order}", change, only(s.clerk.order))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { nowhere(mux, w, r) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		if checksOnly(r) {
			h.Set("Connection", "close")
		}
		r.Body = http.MaxBytesReader(w, r.Body, largestBody)
		if strings.Contains(r.URL.Path, "//") { // the mux would send the client elsewhere, which may pass for success
			refuse(w, http.StatusNotFound, "there is no "+r.URL.Path+": a name in it is empty")
			return
		}
		mux.ServeHTTP(w, r)
	})
}
