package ensemble

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/election/zkmem"
	"understudy/supervisor/testbed/keytest"
	"understudy/supervisor/testbed/must"
	"understudy/supervisor/testbed/zkfaults"
	"understudy/supervisor/testbed/zktest"
)

func asked(servers ...string) election.Config {
	return election.Config{Servers: servers, Lease: 3 * time.Second, Logger: hclog.NewNullLogger()}
}

func embedded(t *testing.T, server *zkfaults.Server) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-served; !errors.Is(err, zkmem.ErrClosed) {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

var six = Use{Lease: 3 * time.Second, Grace: 2 * time.Second}

func has(list []string, part string) bool {
	return slices.ContainsFunc(list, func(text string) bool { return strings.Contains(text, part) })
}

func TestServersOfDifferentEnsemblesAreRefused(t *testing.T) {
	a, b := embedded(t, zkfaults.New(zkfaults.Config{})), embedded(t, zkfaults.New(zkfaults.Config{}))
	if want, got := a+" and "+b+" are not servers of one ensemble: two nodes could be active at once", Strangers(t.Context(), asked(a, b)); got != want {
		t.Errorf("%q", got)
	}
	if v := Look(t.Context(), asked(a, b)).Judge(six); len(v.Faults) != 1 {
		t.Errorf("%+v", v)
	}
}

func TestServersOfOneEnsembleAreKnownAsSuch(t *testing.T) {
	e := zkfaults.NewEnsemble(zkfaults.Config{TickTime: time.Second}, zkfaults.EnsembleConfig{})
	t.Cleanup(func() { _ = e.Close() })
	var servers []string
	for i := range 3 {
		servers = append(servers, embedded(t, e.Server(i)))
	}
	r := Look(t.Context(), asked(servers...))
	v := r.Judge(six)
	if len(v.Faults) > 0 || Strangers(t.Context(), asked(servers...)) != "" || r.Servers[1].Least != 2*time.Second || r.Servers[1].Most != 20*time.Second || r.Servers[2].Tick != time.Second {
		t.Errorf("%+v %+v", r, v)
	}
	if want := "a lost host is taken over after up to 5.7s: 2s of grace included"; !has(v.Notes, want) {
		t.Errorf("%q", v.Notes)
	}
}

func TestAServerThatKeepsNoSessionIsRefused(t *testing.T) {
	server := zkfaults.New(zkfaults.Config{})
	address := embedded(t, server)
	server.ForgetSessions(true)
	if v := Look(t.Context(), asked(address)).Judge(six); !has(v.Faults, address+" keeps no session over a reconnect") {
		t.Errorf("%+v", v)
	}
}

func TestWhatCannotBeReachedIsNamed(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	address := embedded(t, zkfaults.New(zkfaults.Config{}))
	r := Look(t.Context(), asked(address, "127.0.0.1:1"))
	if v := r.Judge(six); len(v.Faults) > 0 || !has(v.Warnings, "127.0.0.1:1 gives no session (") || !has(v.Warnings, "one server") {
		t.Errorf("%+v", v)
	}
	other := web.Listener.Addr().String()
	r = Look(t.Context(), asked(other))
	if v := r.Judge(six); r.Reached() || !has(v.Faults, other+" answers, and is no ZooKeeper") {
		t.Errorf("%+v", v)
	}
	r = Look(t.Context(), asked("127.0.0.1:1"))
	if v := r.Judge(six); r.Reached() || len(v.Faults) > 0 {
		t.Errorf("%+v", v)
	}
}

func TestWhatFollowsFromASetup(t *testing.T) {
	number := func(n int) *int { return &n }
	server := func(change func(*ServerStatus)) ServerStatus {
		s := ServerStatus{Address: "zk1:2181", Mode: "follower", Tick: 2 * time.Second, Least: 4 * time.Second, Most: 40 * time.Second, Voters: 3, Clients: number(60)}
		change(&s)
		return s
	}
	same := func(*ServerStatus) {}
	three := func(change func(*ServerStatus)) []ServerStatus {
		return []ServerStatus{server(change), server(same), server(same)}
	}
	for name, c := range map[string]struct {
		servers []ServerStatus
		use     Use
		want    string // in the warnings; "": there is none
	}{
		"three":        {three(same), six, ""},
		"one":          {[]ServerStatus{server(func(s *ServerStatus) { s.Mode, s.Voters = "standalone", 0 })}, six, "ZooKeeper is one server"},
		"two":          {[]ServerStatus{server(func(s *ServerStatus) { s.Voters = 2 }), server(func(s *ServerStatus) { s.Voters = 2 })}, six, "ZooKeeper is two servers"},
		"four":         {three(func(s *ServerStatus) { s.Voters = 4 }), six, "ZooKeeper is 4 servers, which bear the loss of 1, as 3 do"},
		"one of three": {[]ServerStatus{server(same)}, six, "the config lists 1 of 3 servers"},
		"connections":  {three(func(s *ServerStatus) { s.Clients = number(3) }), six, "takes 3 connections from one host"},
		"too few":      {three(func(s *ServerStatus) { s.Clients = number(2) }), six, "so a short interruption ends a session"},
		"unlimited":    {three(func(s *ServerStatus) { s.Clients = number(0) }), six, ""},
		"old":          {three(func(s *ServerStatus) { s.Version = "3.4.14" }), six, "is ZooKeeper 3.4.14"},
		"new":          {three(func(s *ServerStatus) { s.Version = "3.10.0" }), six, ""},
		"temporary":    {three(func(s *ServerStatus) { s.DataDir = "/tmp/zk" }), six, "the dataDir of zk1:2181, /tmp/zk, is in /tmp"},
		"long":         {three(same), Use{Lease: time.Minute}, "grants sessions of 40s at most, less than the lease of 1m0s: a short outage already moves services. Raise maxSessionTimeout there"},
	} {
		v := Snapshot{Servers: c.servers}.Judge(c.use)
		if (c.want == "") != (len(v.Warnings) == 0) || c.want != "" && !has(v.Warnings, c.want) || len(v.Faults) > 0 {
			t.Errorf("%s: %q", name, v)
		}
	}
}

// A real ensemble is known by its answers.
func TestRealServersAreKnown(t *testing.T) {
	e := zktest.Start(t, zktest.Config{Servers: 3, ExtraLines: []string{"4lw.commands.whitelist=srvr,conf"}})
	how := asked(e.ClientAddrs()...)
	r := Look(t.Context(), how)
	v := r.Judge(six)
	s := r.Servers[0]
	if len(v.Faults) > 0 || s.Version != zktest.Version() || s.Voters != 3 || s.Tick != 500*time.Millisecond || s.Least != time.Second || s.Most != 10*time.Second {
		t.Errorf("%+v\n%+v", s, v)
	}
	if !has(v.Notes, "3 servers: services keep running while 1 of them cannot be reached") {
		t.Errorf("%+v", v)
	}
	must.OK(t, e.Kill(1))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	must.OK(t, e.WaitReady(ctx))
	r = Look(t.Context(), how)
	if v := r.Judge(six); len(v.Faults) > 0 || !has(v.Warnings, e.ClientAddrs()[1]+" gives no session (") {
		t.Errorf("%+v", v)
	}
}

func TestASecureServerIsAskedOverTLSAlone(t *testing.T) {
	zktest.Need(t)
	auth := keytest.New(t)
	auth.Sign(t, "server", net.IPv4(127, 0, 0, 1))
	auth.Sign(t, "client", nil)
	secure := ""
	for secure == "" { // below the ports that the kernel gives to clients, which would take it before the server does
		address := fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(8000))
		if l, err := net.Listen("tcp", address); err == nil {
			_ = l.Close()
			secure = address
		}
	}
	_, port, _ := net.SplitHostPort(secure)
	e := zktest.Start(t, zktest.Config{
		JavaArgs: []string{"-Dzookeeper.serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory"},
		ExtraLines: []string{
			"secureClientPort=" + port, "ssl.clientAuth=need", "ssl.keyStore.type=PEM", "ssl.trustStore.type=PEM",
			"ssl.keyStore.location=" + auth.File("server-both"), "ssl.trustStore.location=" + auth.File("ca"),
		},
	})
	how := asked(secure)
	how.TLS = auth.TLS("client")
	s := Look(t.Context(), how).Servers[0]
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for limit := time.Now().Add(time.Minute); s.Error != "" && time.Now().Before(limit); <-again.C { // it opens this port after the plain one, and its first handshake takes a while
		s = Look(t.Context(), how).Servers[0]
	}
	if s.Error != "" || s.Version != zktest.Version() || s.DataDir == "" {
		t.Errorf("%+v", s)
	}
	plain := asked(e.ClientAddrs()...)
	plain.TLS = how.TLS
	if s := Look(t.Context(), plain).Servers[0]; !strings.Contains(s.Error, "is this the secure port?") {
		t.Errorf("TLS to the plain port: %q", s.Error)
	}
	if s := Look(t.Context(), asked(secure)).Servers[0]; !strings.Contains(s.Error, "zookeeper.tls") {
		t.Errorf("plain text to the secure port: %q", s.Error)
	}
}

func TestWhatARealServerDoesNotTellIsNamed(t *testing.T) {
	e := zktest.Start(t, zktest.Config{ExtraLines: []string{"4lw.commands.whitelist=srvr"}})
	if s := Look(t.Context(), asked(e.ClientAddrs()...)).Servers[0]; !slices.Equal(s.Unknown, []string{"dataDir", "maxClientCnxns", "tickTime"}) {
		t.Errorf("%+v", s)
	}
}
