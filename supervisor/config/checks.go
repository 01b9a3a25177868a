package config

import "time"

// Ready says when a process counts as ready: at most one of the ways is given, and none means at once. Of a oneshot,
// which is ready once it has ended, only Timeout counts, and 0 means that it may take as long as it likes.
type Ready struct {
	TCP     string        `yaml:"tcp,omitempty" oneof:"way" doc:"When host:port accepts a connection."`
	HTTP    string        `yaml:"http,omitempty" oneof:"way" doc:"When a GET of the URL is answered with a status from 200 to 399."`
	Exec    Command       `yaml:"exec,flow,omitempty" oneof:"way" doc:"When the command ends with success. It is tried again until then."`
	Notify  bool          `yaml:"notify,omitempty" oneof:"way" doc:"When it sends READY=1 to the socket in NOTIFY_SOCKET, as sd_notify does."`
	After   time.Duration `yaml:"after,omitempty" oneof:"way" doc:"When it has run for this long."`
	Timeout time.Duration `yaml:"timeout,omitempty" doc:"How long it may take to become ready before it has failed. Excludes after. A oneshot has to end in this time, if it is set."`
}

// HealthCheck is a check of the running service, at most one of the ways; none means that there is no check.
type HealthCheck struct {
	Exec       Command       `yaml:"exec,flow,omitempty" oneof:"way" doc:"It is healthy while the command ends with success."`
	HTTP       string        `yaml:"http,omitempty" oneof:"way" doc:"It is healthy while a GET of the URL is answered with a status from 200 to 399."`
	TCP        string        `yaml:"tcp,omitempty" oneof:"way" doc:"It is healthy while host:port accepts a connection."`
	Interval   time.Duration `yaml:"interval" doc:"How long from the start of one check to the start of the next."`
	Timeout    time.Duration `yaml:"timeout" doc:"How long a check may take before it is killed and has failed."`
	Failures   int           `yaml:"failures" doc:"How many failures in a row make it unhealthy."`
	StartDelay time.Duration `yaml:"start_delay" doc:"How long after the service became ready the first check starts."`
	Follower   FollowerCheck `yaml:"follower,omitempty" doc:"What is checked in its place while a program stands by, or follows, if that differs."`
}

// FollowerCheck is the way in which a program is checked that runs beside the active one.
type FollowerCheck struct {
	Exec Command `yaml:"exec,flow,omitempty" oneof:"way" doc:"As health.exec."`
	HTTP string  `yaml:"http,omitempty" oneof:"way" doc:"As health.http."`
	TCP  string  `yaml:"tcp,omitempty" oneof:"way" doc:"As health.tcp."`
}

// follower is the check of a program that runs beside the active one.
func (h HealthCheck) follower() HealthCheck {
	if f := h.Follower; len(f.Exec) > 0 || f.HTTP != "" || f.TCP != "" {
		h.Exec, h.HTTP, h.TCP = f.Exec, f.HTTP, f.TCP
	}
	return h
}

// Precheck is a check on a standby; no command means that there is no check.
type Precheck struct {
	Exec     Command       `yaml:"exec,flow,omitempty" doc:"The node could run the service while the command ends with success."`
	Interval time.Duration `yaml:"interval" doc:"How long from the start of one check to the start of the next."`
	Timeout  time.Duration `yaml:"timeout" doc:"How long a check may take before it is killed and has failed."`
}

// Way names the key that says how readiness is seen, "" when none does.
func (r Ready) Way() string {
	switch {
	case r.TCP != "":
		return "tcp"
	case r.HTTP != "":
		return "http"
	case len(r.Exec) > 0:
		return "exec"
	case r.Notify:
		return "notify"
	case r.After > 0:
		return "after"
	}
	return ""
}

// Way names the key that says how health is seen, "" when there is no check.
func (h HealthCheck) Way() string {
	switch {
	case len(h.Exec) > 0:
		return "exec"
	case h.HTTP != "":
		return "http"
	case h.TCP != "":
		return "tcp"
	}
	return ""
}

func (r Ready) check(p place) {
	checkAddress(p.key("tcp"), r.TCP)
	checkURL(p.key("http"), r.HTTP)
	r.Exec.checkGiven(p.key("exec"))
	after, timeout := p.key("after"), p.key("timeout")
	switch way := r.Way(); {
	case way == "after" && after.given() && timeout.given():
		timeout.fault("does not go with after: a process is ready once it has run for %v", r.After)
	case way == "after" || after.given():
		checkNotNegative(after, r.After)
	case way != "":
		checkPositive(timeout, r.Timeout)
	case timeout.given():
		checkNotNegative(timeout, r.Timeout)
		timeout.noEffect("a way to check", "tcp:, http:, exec:, notify: or after:")
	case p.given() && !p.key("notify").given():
		p.noEffect("a way to check", "tcp:, http:, exec:, notify: or after:")
	}
}

// noEffect warns of settings that are given without what they belong to. Defaults may leave that to the services.
func (p place) noEffect(without, add string) {
	if p.keys[0][0] != "defaults" {
		p.warn("has no effect without %s: add %s", without, add)
	}
}

const shortestInterval = 100 * time.Millisecond

// checkLooks also warns of a check that cannot fail.
func (words Command) checkLooks(p place) {
	words.checkGiven(p)
	if idle := words.idle(); idle != "" {
		p.warn("%s succeeds however the program is: name a command that asks it, or leave the check out", quoted(idle))
	}
}

func (h HealthCheck) check(p place) {
	h.Exec.checkLooks(p.key("exec"))
	checkURL(p.key("http"), h.HTTP)
	checkAddress(p.key("tcp"), h.TCP)
	if h.Way() == "" && h.Interval == 0 && h.Timeout == 0 {
		return // it is not there
	}
	if interval := p.key("interval"); checkPositive(interval, h.Interval) && h.Interval < shortestInterval {
		interval.warn("%v is short: the checks take processor time from the program. Write %v or more", h.Interval, shortestInterval)
	}
	checkPositive(p.key("timeout"), h.Timeout)
	checkNotNegative(p.key("start_delay"), h.StartDelay)
	checkBetween(p.key("failures"), h.Failures, 1, mostFailures)
	follower := p.key("follower")
	h.Follower.Exec.checkLooks(follower.key("exec"))
	checkURL(follower.key("http"), h.Follower.HTTP)
	checkAddress(follower.key("tcp"), h.Follower.TCP)
	if h.follower().Way() == "" && p.given() {
		p.noEffect("a way to check", "exec:, http: or tcp:")
	}
}

func (c Precheck) check(p place) {
	c.Exec.checkGiven(p.key("exec"))
	if idle := c.Exec.idle(); idle != "" {
		p.key("exec").warn("%s succeeds however this node is: name a command that looks, or leave the check out", quoted(idle))
	}
	if c.Exec.program() == "false" {
		p.key("exec").warn("\"false\" never succeeds, so no node runs the service: name a command that looks, or leave the check out")
	}
	if len(c.Exec) == 0 && c.Interval == 0 && c.Timeout == 0 {
		return // it is not there
	}
	checkPositive(p.key("interval"), c.Interval)
	checkPositive(p.key("timeout"), c.Timeout)
	if len(c.Exec) == 0 && p.given() {
		p.noEffect("a way to check", "exec:")
	}
}
