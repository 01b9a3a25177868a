package web

import (
	"runtime"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"understudy/election"
	"understudy/supervisor/control"
)

// metrics are counted as events happen; gauges are collected at each scrape.
type metrics struct {
	registry  *prometheus.Registry
	failovers *prometheus.CounterVec
	handovers *prometheus.CounterVec
	ends      *prometheus.CounterVec
	restarts  *prometheus.CounterVec
	claims    *prometheus.CounterVec
	takeover  *prometheus.HistogramVec
	gap       *prometheus.HistogramVec
	fenced    *prometheus.HistogramVec
	heartbeat prometheus.Histogram
	evicted   prometheus.Counter
	unserved  *prometheus.CounterVec
}

// The buckets reach from a clean hand-over to the loss of a host.
var seconds = []float64{.002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 20, 60, 300}

func newMetrics() *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "understudy_" + name, Help: help}, labels)
	}
	histogram := func(name, help string, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "understudy_" + name, Help: help, Buckets: seconds}, labels)
	}
	m := &metrics{
		registry: prometheus.NewRegistry(),
		failovers: counter("failovers_total",
			"Times that the service became active on this node after an activation that did not end as planned, by how that ended.",
			"service", "reason"),
		handovers: counter("handovers_total",
			"Times that the service became active on this node after an activation that ended as planned, by how that ended.",
			"service", "reason"),
		ends: counter("activations_ended_total", "Times that the service stopped being active on this node, by the reason.",
			"service", "reason"),
		restarts: counter("restarts_total", "Times that the service's programs were started again on this node after their end.",
			"service"),
		claims: counter("address_claims_total",
			"Times that another machine claimed an address of the service while it was set on this node, "+
				"at most one in ten seconds for each address.", "service"),
		takeover: histogram("takeover_seconds", "From finding the lock free to being active, fencing included, on this node.", "service"),
		gap: histogram("gap_seconds",
			"From the last proof that the previous program ran to the service being ready on this node, as in the history.", "service"),
		fenced: histogram("fencing_seconds",
			"How long it took this node to be sure that the previous program is dead, or to be refused that.", "service", "result"),
		heartbeat: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "understudy_heartbeat_seconds", Help: "How long ZooKeeper takes to acknowledge the write that extends the lease.",
			Buckets: []float64{.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5},
		}),
		evicted: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "understudy_http_evicted_connections_total", Help: "Connections that were closed to make room for newer ones.",
		}),
		unserved: counter("http_refused_requests_total", "Requests that were refused, by the reason.", "reason"),
	}
	for _, reason := range []string{"busy", "unknown host", "wrong token"} {
		m.unserved.WithLabelValues(reason)
	}
	m.registry.MustRegister(m.failovers, m.handovers, m.ends, m.restarts, m.claims, m.takeover, m.gap, m.fenced,
		m.heartbeat, m.evicted, m.unserved, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// ends are how activations end, as far as that can be said beforehand.
var ends = []election.Reason{
	election.SwitchAsked, election.RestartAsked, election.StopAsked, election.StopOrdered, election.PreferredBack, election.ChildOnce,
	election.SupervisorLost, election.LeaseEnding, election.SessionExpired, election.LockLost, election.NotReachable, election.ChildFailed,
	election.OutOfMemory, election.ChildDone, election.HookFailed, election.UndoFailed, election.ReasonUnknown,
}

// expect makes the series of a service, so that the first event is seen to be one: a rate knows nothing of a counter that
// was not there before.
func (m *metrics) expect(service string) {
	for _, reason := range append(slices.Clone(ends), fencedEnds()...) {
		m.moves(reason).WithLabelValues(service, string(reason))
	}
	m.restarts.WithLabelValues(service)
	m.claims.WithLabelValues(service)
	for _, result := range []string{"dead", "refused"} {
		m.fenced.WithLabelValues(service, result)
	}
}

// moves counts activations after one that ended like that.
func (m *metrics) moves(reason election.Reason) *prometheus.CounterVec {
	if reason.Planned() {
		return m.handovers
	}
	return m.failovers
}

// step counts what a change of a service's state means.
func (m *metrics) step(was, now control.LocalStatus, claimed time.Time) {
	if was.Role == now.Role {
		return
	}
	switch {
	case now.Role == election.RoleActive && !claimed.IsZero():
		m.takeover.WithLabelValues(now.Service).Observe(time.Since(claimed).Seconds())
	case was.Role == election.RoleActive:
		m.ends.WithLabelValues(now.Service, string(now.Reason)).Inc()
	}
}

// fencing counts one.
func (m *metrics) fencing(service, by string, took time.Duration) {
	result := "dead"
	if by == "" {
		result = "refused"
	}
	m.fenced.WithLabelValues(service, result).Observe(took.Seconds())
}

// forget drops the series of a service that is gone.
func (m *metrics) forget(service string) {
	of := prometheus.Labels{"service": service}
	for _, vec := range []interface {
		DeletePartialMatch(prometheus.Labels) int
	}{m.failovers, m.handovers, m.ends, m.restarts, m.claims, m.takeover, m.gap, m.fenced} {
		vec.DeletePartialMatch(of)
	}
}

// gauges are collected at each scrape.
type gauges struct {
	board         *Board
	node, version string
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("understudy_"+name, help, labels, nil)
}

var (
	roleDesc   = desc("role", "1 for the role that the service has on this node, 0 for the others.", "service", "role")
	healthDesc = desc("healthy", "1 while the service is active on this node, ready and not failing; else 0.", "service")
	ableDesc   = desc("can_take_over", "1 while the service stands by on this node and nothing keeps it from starting here; else 0.",
		"service")
	tokenDesc = desc("token", "The token of the newest activation on this node; 0 before the first.", "service")
	sinceDesc = desc("role_since_timestamp_seconds", "When the service took its role on this node, in seconds since 1970.", "service")
	copyDesc  = desc("copy_role", "1 for what this node's copy of a replicated service is, 0 for what else it could be.",
		"service", "role")
	dataDesc  = desc("copy_promotion", "The token of the newest promotion whose data this node's copy has; 0: of none.", "service")
	farDesc   = desc("copy_position", "The newest position of this node's copy.", "service")
	askedDesc = desc("copy_position_age_seconds", "How long ago this node's copy reported that position.", "service")
	seesDesc  = desc("copy_reaches_primary",
		"1 while this node reaches the primary from outside, 0 while it does not; missing where it cannot tell.", "service")
	leaseDesc    = desc("lease_remaining_seconds", "How long the lease lasts if no further heartbeat is acknowledged; 0 without one.")
	sessionDesc  = desc("session", "1 while there is a session with ZooKeeper and its lease lasts.")
	heldDesc     = desc("failsafe", "1 while ZooKeeper is gone and the lease goes by the promises of all other members.")
	faultDesc    = desc("config_fault", "1 while a changed config is not taken up.")
	watchdogDesc = desc("watchdog_armed", "1 while the watchdog resets this machine unless it is fed.", "device", "mode")
	nodeDesc     = desc("node_connected",
		"1 for each known node that is connected to ZooKeeper, 0 for one that is gone, as this node sees it.", "node")
	buildDesc = desc("build_info", "Always 1.", "version", "go", "node")
)

func (g gauges) Describe(c chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		roleDesc, healthDesc, ableDesc, tokenDesc, sinceDesc, copyDesc, dataDesc, farDesc, askedDesc, seesDesc, leaseDesc, sessionDesc,
		heldDesc, faultDesc, watchdogDesc, nodeDesc, buildDesc,
	} {
		c <- d
	}
}

func (g gauges) Collect(c chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		c <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	for name, copied := range g.board.copies() {
		collectCopy(gauge, name, copied())
	}
	g.board.mu.Lock()
	defer g.board.mu.Unlock()
	left := g.board.leftLocked()
	for name, s := range g.board.services {
		for _, role := range election.Roles() {
			gauge(roleDesc, one(s.Role == role), name, string(role))
		}
		gauge(healthDesc, one(idle(s, left) == ""), name)
		gauge(ableDesc, one(s.Role == election.RoleStandby && s.Health == election.HealthOK), name)
		gauge(tokenDesc, float64(s.Token), name)
		if !s.Since.IsZero() {
			gauge(sinceDesc, float64(s.Since.UnixMilli())/1000, name)
		}
	}
	gauge(leaseDesc, left.Seconds())
	gauge(sessionDesc, one(left > 0))
	gauge(heldDesc, one(g.board.lease.Held && left > 0))
	gauge(faultDesc, one(g.board.fault != ""))
	for node, connected := range g.board.nodes {
		gauge(nodeDesc, one(connected), node)
	}
	if w := g.board.watchdog; w.armed != nil {
		gauge(watchdogDesc, one(w.armed()), w.device, w.mode)
	}
	gauge(buildDesc, 1, g.version, runtime.Version(), g.node)
}

func collectCopy(gauge func(d *prometheus.Desc, value float64, labels ...string), service string, v control.CopyStatus) {
	for _, is := range []string{control.CopyPrimary, control.CopyFollower, control.CopyUnknown} {
		gauge(copyDesc, one(v.Is == is), service, is)
	}
	gauge(dataDesc, float64(v.Promotion), service)
	if v.Position != nil {
		gauge(farDesc, float64(*v.Position), service)
		gauge(askedDesc, time.Since(*v.Asked).Seconds(), service)
	}
	if v.Sees != nil {
		gauge(seesDesc, one(v.Sees.Well), service)
	}
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
