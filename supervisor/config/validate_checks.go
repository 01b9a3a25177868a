package config

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"
)

func (v *validator) ready(p path, r Ready) {
	v.tcp(p.key("tcp"), r.TCP)
	v.http(p.key("http"), r.HTTP)
	v.notEmpty(p.key("exec"), r.Exec)
	after, timeout := p.key("after"), p.key("timeout")
	switch way := r.Way(); {
	case way == "after" && v.given(after) && v.given(timeout):
		v.fault(timeout, "does not go with after: a process that has run for %v is ready, and nothing is waited for longer", r.After)
	case way == "after" || v.given(after):
		v.notNegative(after, r.After)
	case way != "":
		v.positive(timeout, r.Timeout)
	case v.given(timeout):
		v.notNegative(timeout, r.Timeout)
		v.noWay(p, timeout, "tcp:, http:, exec:, notify: or after:")
	}
}

// noWay warns of a check that has been told everything but what to look at. Defaults may leave that to the services.
func (v *validator) noWay(p, key path, ways string) {
	if p[0] != "defaults" {
		v.doubt([]path{key}, "has no effect without a way to check: add %s", ways)
	}
}

func (v *validator) health(p path, h Health) {
	v.notEmpty(p.key("exec"), h.Exec)
	v.http(p.key("http"), h.HTTP)
	v.tcp(p.key("tcp"), h.TCP)
	if h.Way() == "" && h.Interval == 0 && h.Timeout == 0 {
		return // it is not there
	}
	v.positive(p.key("interval"), h.Interval)
	v.positive(p.key("timeout"), h.Timeout)
	v.notNegative(p.key("start_delay"), h.StartDelay)
	if h.Failures < 1 || h.Failures > mostFailures {
		v.fault(p.key("failures"), "%d is not a number from 1 to %d", h.Failures, mostFailures)
	}
	if h.Way() == "" && v.given(p) {
		v.noWay(p, p, "exec:, http: or tcp:")
	}
}

func (v *validator) precheck(p path, c Precheck) {
	v.notEmpty(p.key("exec"), c.Exec)
	if len(c.Exec) == 0 && c.Interval == 0 && c.Timeout == 0 {
		return // it is not there
	}
	v.positive(p.key("interval"), c.Interval)
	v.positive(p.key("timeout"), c.Timeout)
	if len(c.Exec) == 0 && v.given(p) {
		v.noWay(p, p, "exec:")
	}
}

// serving checks what is served over HTTP.
func (v *validator) serving(p path, h HTTP) {
	if h.Listen != "" { // empty: off
		v.tcp(p.key("listen"), h.Listen)
	}
	for _, file := range []struct{ key, name string }{{"token_file", h.TokenFile}, {"read_token_file", h.ReadTokenFile}} {
		token := p.key(file.key)
		switch {
		case file.name == "" && v.given(token):
			v.fault(token, "is empty: name the file that holds the token")
		case file.name != "" && !strings.HasPrefix(file.name, "/"): // it may be the secret itself, which no log shall show
			v.fault(token, "must be the absolute path of a file that holds the token")
		case file.name != "":
			v.absolute(token, file.name)
			if h.Listen == "" {
				v.doubt([]path{token}, "has no effect without listen:")
			}
		}
	}
	if h.ReadTokenFile != "" && h.ReadTokenFile == h.TokenFile {
		v.danger([]path{p.key("read_token_file")}, "is the file of token_file: everybody who may look may change something, too")
	}
	for i, name := range h.Hosts {
		if name == "" || strings.ContainsAny(name, " \t/:[]*@") {
			v.fault(p.key("hosts").item(i), "%s: write the name of a host, without a scheme or a port", quoted(name))
		}
	}
	if h.TLS != nil {
		v.serverFiles(p.key("tls"), *h.TLS)
	}
	v.clear(p, h)
}

func (v *validator) serverFiles(p path, t TLSFiles) {
	for _, file := range []struct{ key, name, what string }{{"cert_file", t.CertFile, "the certificate"}, {"key_file", t.KeyFile, "its key"}} {
		if file.name == "" {
			v.fault(p.key(file.key), "missing: name the file that holds %s", file.what)
			continue
		}
		v.absolute(p.key(file.key), file.name)
	}
}

// clear warns of tokens that go over a network where it can be read.
func (v *validator) clear(p path, h HTTP) {
	if h.Listen == "" || h.TLS != nil || isLoopback(h.Listen) {
		return
	}
	for key, name := range map[string]string{"token_file": h.TokenFile, "read_token_file": h.ReadTokenFile} {
		if name != "" {
			v.danger([]path{p.key(key)}, "the token is sent without TLS to %s, where others can read it: give http.tls a cert_file and a key_file, or say "+
				"`listen: 127.0.0.1:PORT` and put a proxy that does TLS in front", h.Listen)
		}
	}
}

// isLoopback tells whether only this machine reaches what listens there.
func isLoopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// tcp checks host:port, in which the host may be missing for this one.
func (v *validator) tcp(p path, address string) {
	if address == "" {
		if v.given(p) {
			v.fault(p, "is empty: write host:port")
		}
		return
	}
	host, port, err := net.SplitHostPort(address)
	switch n, bad := strconv.ParseUint(port, 10, 16); {
	case strings.Contains(address, "://"):
		v.fault(p, "%s: write host:port without a scheme", quoted(address))
	case err != nil:
		v.fault(p, "%s is not host:port, such as 127.0.0.1:6379 or [::1]:6379", quoted(address))
	case bad != nil || n == 0:
		v.fault(p, "%s: the port must be a number from 1 to 65535", quoted(address))
	case !printable(host) || strings.ContainsAny(host, " /?#@\"'"):
		v.fault(p, "%s contains a character that is part of no host name", quoted(address))
	}
}

func (v *validator) http(p path, address string) {
	if address == "" {
		if v.given(p) {
			v.fault(p, "is empty: write a URL")
		}
		return
	}
	u, err := url.Parse(address)
	switch {
	case err != nil:
		v.fault(p, "%s is not a URL such as http://127.0.0.1:8080/healthz", quoted(address))
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Opaque != "":
		v.fault(p, "%s must start with http:// or https:// and a host, as http://127.0.0.1:8080/healthz does", quoted(address))
	case u.User != nil:
		v.fault(p, "a password does not belong into this file")
	}
}

// slowness refuses failures that come too slowly to be counted: an unhealthy service would be restarted here for ever
// instead of being given to another node.
func (v *validator) slowness(p path, w written) {
	r, h := w.Restart, w.Health
	if r.Policy == RestartNever || r.GiveUpAfter < 2 || r.Within <= 0 || r.spread(0) >= r.Within {
		return
	}
	within := p.key("restart").key("within")
	if h.Way() != "" && h.sound() {
		one := h.least()
		if least := r.spread(one); least >= r.Within {
			v.ratio([]path{within, p.key("health").key("interval"), p.key("health").key("failures"), p.key("health").key("start_delay")},
				"an unhealthy service would never be given to another node: each time takes %v to notice "+
					"(start_delay %v + %d*interval %v), so %d of them take %v or more (%s), and within is %v: "+
					"make within longer, or the checks more frequent",
				one, h.StartDelay, h.Failures-1, h.Interval, r.GiveUpAfter, least, r.sum(one), r.Within)
		}
	}
}

// sound reports whether the times can be added.
func (h Health) sound() bool {
	return 0 < h.Interval && h.Interval <= longest && 0 < h.Failures && h.Failures <= mostFailures &&
		0 <= h.StartDelay && h.StartDelay <= longest
}

// least is how long an unhealthy service takes to be noticed at the least.
func (h Health) least() time.Duration {
	return h.StartDelay + time.Duration(h.Failures-1)*h.Interval
}

// sum shows how spread comes about.
func (r Restart) sum(one time.Duration) string {
	var terms []string
	delay := r.Delay
	for i := range r.GiveUpAfter - 1 {
		if i == 6 {
			terms = append(terms, "...")
			break
		}
		terms = append(terms, delay.String())
		delay = min(2*delay, r.MaxDelay)
	}
	text := strings.Join(terms, " + ")
	if one > 0 {
		text = fmt.Sprintf("%d*%v + %s", r.GiveUpAfter-1, one, text)
	}
	return text
}
