package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"understudy/supervisor/control"
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
	watchersOfOne  = 128
	mostReads      = 256 // of status, history and page: more than 200 connections are left that only wait, and make room
	readsOfOne     = 64
	mostScrapes    = 32
	scrapesOfOne   = 4
)

// Server serves one Config.
type Server struct {
	cfg     Config
	cluster *reader[control.Status]
	history *reader[[]control.Activation]
	stream  *stream
	clerk   *clerk
	access  *access

	conns, watching, reading, scraping crowd

	complaints
}

// New makes a Server of a Config whose Board and Cluster are set.
func New(cfg Config) *Server {
	s := &Server{
		cfg: cfg, stream: newStream(), complaints: newComplaints(cfg.Logger),
		conns:    crowd{most: mostConns, mostOfOne: mostOfOne, yields: true},
		watching: crowd{most: mostWatchers, mostOfOne: watchersOfOne},
		reading:  crowd{most: mostReads, mostOfOne: readsOfOne},
		scraping: crowd{most: mostScrapes, mostOfOne: scrapesOfOne},
	}
	s.cluster = newReader(freshness, func(ctx context.Context, _ string) (control.Status, error) { return cfg.Cluster.Status(ctx) })
	s.history = newReader(time.Second, func(ctx context.Context, service string) ([]control.Activation, error) {
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
			s.cfg.Logger.Info("serving HTTP", "address", l.Addr().String(), "writable", s.cfg.Token != nil, "tls", s.cfg.Certificate != nil)
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
	for _, run := range []func(context.Context){s.cluster.run, s.history.run, s.follow, judge{s.cfg.Board, s.history}.run, s.clerk.obey, s.tellAll} {
		wg.Go(func() { run(ctx) })
	}
	server := &http.Server{
		Handler: s.routes(), MaxHeaderBytes: largestHeader, ReadHeaderTimeout: headerPatience, ReadTimeout: 2 * headerPatience,
		WriteTimeout: writePatience, IdleTimeout: idlePatience,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: withVisitor, TLSNextProto: plainly(),
		ErrorLog: log.New(mutter{s.muttered}, "", 0),
	}
	wg.Go(func() {
		<-ctx.Done()
		_ = server.Close() // nobody is waited for
	})
	err := server.Serve(s.secured(&door{Listener: l, crowd: &s.conns, told: s.turnedAway}))
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve HTTP: %w", err)
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	// Load balancers ask these, under any name and without a token: they tell nobody anything that is worth the trouble.
	mux.HandleFunc("GET /healthz", attended(s.healthz))
	mux.HandleFunc("GET /readyz", attended(s.readyz))
	mux.HandleFunc("GET /active/{service}", attended(s.active))
	look := func(pattern string, room *crowd, h http.HandlerFunc) {
		mux.HandleFunc("GET "+pattern, s.access.addressed(func(w http.ResponseWriter, r *http.Request) {
			if s.access.mayLook(w, r) {
				s.within(room, h)(w, r)
			}
		}))
	}
	look("/api/v1/status", &s.reading, s.showStatus)
	look("/api/v1/history", &s.reading, s.showHistory)
	look("/api/v1/events", &s.watching, s.watch)
	look("/metrics", &s.scraping, s.scrape())
	look("/{$}", &s.reading, newPage().ServeHTTP)
	change := func(pattern string, h http.HandlerFunc) {
		mux.HandleFunc("POST "+pattern, s.access.addressed(func(w http.ResponseWriter, r *http.Request) {
			if s.access.mayChange(w, r) {
				attended(h)(w, r)
			}
		}))
	}
	change("/api/v1/token", s.access.token)
	change("/api/v1/services/{service}/{order}", s.clerk.order)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		r.Body = http.MaxBytesReader(w, r.Body, largestBody)
		mux.ServeHTTP(w, r)
	})
}

// mostGathered is how many may have the metrics gathered at a time.
const mostGathered = 4

// scrape serves the metrics. Those who ask wait for one another, so that nobody is turned away for others who ask at the same time,
// and nobody waits for one who takes the answer slowly.
func (s *Server) scrape() http.HandlerFunc {
	all := promhttp.HandlerFor(s.cfg.Board.metrics.registry, promhttp.HandlerOpts{})
	free := make(chan struct{}, mostGathered)
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case free <- struct{}{}:
		case <-r.Context().Done():
			return
		}
		text := &written{ResponseWriter: w}
		func() {
			defer func() { <-free }()
			all.ServeHTTP(text, r)
		}()
		_, _ = w.Write(text.body.Bytes())
	}
}

// written is an answer that is sent later.
type written struct {
	http.ResponseWriter
	body bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) { return w.body.Write(p) }
