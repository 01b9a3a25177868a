package fencing

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"understudy/supervisor/testbed/must"
)

// attacked counts what reaches a server, and keeps the last path and Authorization header. It agrees to everything.
type attacked struct {
	*httptest.Server
	asked      int
	path, auth string
}

func newAttacked(t *testing.T) *attacked {
	t.Helper()
	a := &attacked{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		a.asked++
		a.path, a.auth = r.URL.EscapedPath()+"?"+r.URL.RawQuery, r.Header.Get("Authorization")
	}))
	t.Cleanup(a.Close)
	return a
}

func (a *attacked) port() string { return a.URL[strings.LastIndexByte(a.URL, ':')+1:] }

// Whoever writes ZooKeeper can forge a breadcrumb. It chooses neither who gets the bearer token nor whose word counts.
func TestForgedBreadcrumbDoesNotChooseWhoIsAsked(t *testing.T) {
	a := newAttacked(t)
	for name, c := range map[string]struct {
		url  string
		with func(*Target)
	}{
		"a node that ends the user":  {"http://bmc-{node}:" + a.port() + "/off", func(t *Target) { t.Node = "x@127.0.0.1" }},
		"a node that is an address":  {"http://{node}:" + a.port() + "/off", func(t *Target) { t.Node = "127.0.0.1" }},
		"a node in front of a port":  {"http://{node}/off", func(t *Target) { t.Node = "127.0.0.1:" + a.port() }},
		"a host that is an address":  {"http://{host}:" + a.port() + "/off", func(t *Target) { t.Host = "127.0.0.1" }},
		"a host with a port":         {"http://{host}/off", func(t *Target) { t.Host = "127.0.0.1:" + a.port() }},
		"a machine that is a host":   {"http://{machine}:" + a.port() + "/off", func(t *Target) { t.Machine = "127.0.0.1" }},
		"a boot that ends the user":  {"http://bmc-{boot}:" + a.port() + "/off", func(t *Target) { t.Boot = "x@127.0.0.1" }},
		"an agent that is a server":  {"http://{address}/off", func(t *Target) { t.Address = "127.0.0.1:" + a.port() }},
		"a token that is a port":     {"http://127.0.0.1:{token}/off", func(t *Target) { t.Token = 1 }},
		"a session that is the host": {"http://{session}:" + a.port() + "/off", func(t *Target) { t.Session = "0x7f000001" }},
	} {
		t.Run(name, func(t *testing.T) {
			forged := target
			c.with(&forged)
			err := HTTP{URL: c.url, BearerFile: file(t, "the-bearer-token")}.Fence(t.Context(), forged)
			if err == nil || a.asked > 0 {
				t.Errorf("the attacker was asked %d times, with %q: %v", a.asked, a.auth, err)
			}
			a.asked, a.auth = 0, ""
		})
	}
	t.Run("a Host header", func(t *testing.T) {
		forged := target
		forged.Node = "evil.example"
		if err := (HTTP{URL: a.URL, Headers: map[string]string{"host": "{node}"}}).Fence(t.Context(), forged); err == nil || a.asked > 0 {
			t.Errorf("asked %d times: %v", a.asked, err)
		}
	})
}

// What a breadcrumb says is one segment of a path, or one value of a query.
func TestForgedBreadcrumbStaysInItsSegment(t *testing.T) {
	a := newAttacked(t)
	for _, node := range []string{"..", ".", "", "-x", ".x"} {
		forged := target
		forged.Node, forged.Host, forged.Machine, forged.Boot = node, node, node, node
		for _, url := range []string{"/v1/servers/{node}/stop", "/v1/servers/{host}", "/v1/{boot}/x", "/v1/{machine}?x"} {
			if err := (HTTP{URL: a.URL + url}).Fence(t.Context(), forged); err == nil || a.asked > 0 {
				t.Errorf("%q made %s of %s: %v", node, a.path, url, err)
			}
			a.asked = 0
		}
	}
	fine := target
	fine.Node, fine.Address = "a@b:1", "[fe80::1%eth0]:8438"
	must.Report(t, (HTTP{URL: a.URL + "/{service}/{node}/{address}?n={node}&a={address}"}).Fence(t.Context(), fine))
	if want := "/redis/a@b:1/%5Bfe80::1%25eth0%5D:8438?n=a%40b%3A1&a=%5Bfe80%3A%3A1%25eth0%5D%3A8438"; a.path != want {
		t.Errorf("got  %s\nwant %s", a.path, want)
	}
}

// A fence agent switches off what its plugs name and nothing else, and no breadcrumb chooses who gets its password.
func TestForgedBreadcrumbSwitchesNoOtherMachineOff(t *testing.T) {
	for name, c := range map[string]struct {
		plugs   Plugs
		options map[string]string
		with    func(*Target)
	}{
		"a node beside the plugs":       {Plugs{"db-1": "7"}, nil, func(t *Target) { t.Node = "mail" }},
		"an outlet's word":              {Plugs{"db-1": "7"}, nil, func(t *Target) { t.Node = "7" }},
		"no node, beside the plugs":     {Plugs{"db-1": "7"}, nil, func(t *Target) { t.Node = "" }},
		"a listed node, a forged host":  {Plugs{"db-1": "7"}, map[string]string{"ip": "{host}"}, func(t *Target) { t.Host = "evil.example" }},
		"a listed node, another's host": {Plugs{"db-1": "7", "db-2": "8"}, map[string]string{"ip": "{host}"}, func(t *Target) { t.Host = "db-2" }},
		"a listed node, a forged agent": {Plugs{"db-1": "7"}, map[string]string{"ip": "{address}"}, func(t *Target) { t.Address = "evil.example:1" }},
		"a node as an address":          {nil, map[string]string{"ip": "bmc-{node}"}, func(t *Target) { t.Node = "x.evil.example" }},
		"a node as an address's plug":   {nil, map[string]string{"ip": "{plug}"}, func(t *Target) { t.Node = "evil.example" }},
		"a node that is an option":      {nil, nil, func(t *Target) { t.Node = "-x" }},
	} {
		t.Run(name, func(t *testing.T) {
			heard := filepath.Join(t.TempDir(), "heard")
			forged := target
			c.with(&forged)
			f := FenceAgent{
				Command: script(t, `echo "$in" >>`+heard+`; [ $action = off ] || exit 2`), Plugs: c.plugs, Options: c.options,
				Secrets: map[string]string{"password": file(t, "s3cret")},
			}
			err := f.Fence(t.Context(), forged)
			if text, _ := os.ReadFile(heard); err == nil || len(text) > 0 {
				t.Errorf("%v; the agent heard\n%s", err, text)
			}
		})
	}
}

// A command is not told what a shell would read as something else.
func TestForgedBreadcrumbReachesNoCommand(t *testing.T) {
	for _, with := range []func(*Target){
		func(t *Target) { t.Host = "a; reboot" }, func(t *Target) { t.Machine = "$(reboot)" }, func(t *Target) { t.Node = "-rf" },
		func(t *Target) { t.Boot = "a\nb" }, func(t *Target) { t.Address = "`reboot`:1" }, func(t *Target) { t.Host = "root@evil" },
	} {
		forged := target
		with(&forged)
		if err := sh("exit 0").Fence(t.Context(), forged); err == nil {
			t.Errorf("it ran for %+v", forged)
		}
	}
}
