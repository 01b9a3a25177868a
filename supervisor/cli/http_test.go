package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/config"
	"understudy/supervisor/control"
	"understudy/supervisor/control/web"
	"understudy/supervisor/keyfile/keytest"
)

func reachTo(t *testing.T, zk string) *reach {
	r := &reach{turn: make(chan struct{}, 1), cfg: election.Config{
		Servers: []string{zk}, Root: "/understudy", Timeout: 4 * time.Second, Logger: hclog.NewNullLogger(),
	}}
	t.Cleanup(r.Close)
	return r
}

func TestOverHTTPTheClusterIsWhatTheCommandsSay(t *testing.T) {
	zk := emptyCluster(t)
	stand(t, zk, "db")
	r := reachTo(t, zk)
	text, err := r.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var here, there control.Status
	code, out, errs := says(t, "status", "--json", "--zk", zk)
	if code != 0 {
		t.Fatal(errs)
	}
	if err := errors.Join(json.Unmarshal(text, &here), json.Unmarshal([]byte(out), &there)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(there, here); diff != "" || len(here.Services) != 1 {
		t.Errorf("%s %s", text, diff)
	}
	if changed, err := r.Pause(t.Context(), "db", true, "somebody", "new disks"); err != nil || !changed {
		t.Errorf("pause: %v %v", changed, err)
	}
	if _, out, _ := says(t, "status", "--zk", zk); !strings.Contains(out, "paused by somebody: new disks") {
		t.Errorf("status: %s", out)
	}
	if _, err := r.Pause(t.Context(), "x", true, "", ""); !errors.Is(err, web.ErrUnknown) || err.Error() != `no service "x"; there is: db` {
		t.Errorf("pause: %v", err)
	}
	if _, err := r.History(t.Context(), "x"); !errors.Is(err, web.ErrUnknown) {
		t.Errorf("history: %v", err)
	}
	if list, err := r.History(t.Context(), ""); err != nil || len(list) != 0 {
		t.Errorf("history: %v %v", list, err)
	}
}

func TestOverHTTPAnOrderIsRefusedAsTheCommandsRefuseIt(t *testing.T) {
	zk := emptyCluster(t)
	stand(t, zk, "db")
	r := reachTo(t, zk)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	handOver := func(service string) error {
		_, err := r.Switchover(ctx, web.Handover{Service: service, By: "somebody", Tell: func(string) {}})
		return err
	}
	for what, err := range map[string]error{
		"switchover": handOver("db"), "restart": r.Restart(ctx, "db", "somebody"), "reload": r.Reload(ctx, "db", "somebody"),
	} {
		if !errors.Is(err, web.ErrRefused) || !errors.Is(err, control.ErrRefused) || !strings.Contains(err.Error(), "nobody is active") {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, err := range map[string]error{
		"switchover": handOver("x"), "restart": r.Restart(ctx, "x", "somebody"), "reload": r.Reload(ctx, "x", "somebody"),
	} {
		if !errors.Is(err, web.ErrUnknown) || !strings.Contains(err.Error(), `no service "x"`) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := r.Switchover(t.Context(), web.Handover{Service: "db"}); err == nil || r.cluster != nil {
		t.Errorf("without a deadline: %v", err)
	}
}

func TestAConnectionThatFailsIsMadeAnew(t *testing.T) {
	zk := emptyCluster(t)
	r := reachTo(t, zk)
	if _, err := r.Status(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := r.cluster
	broken := errors.New("broken")
	if err := r.with(t.Context(), func(*control.Cluster) error { return broken }); !errors.Is(err, broken) || r.cluster != nil {
		t.Errorf("%v, and the connection is kept: %v", err, r.cluster != nil)
	}
	if _, err := r.Status(t.Context()); err != nil || r.cluster == first {
		t.Errorf("%v", err)
	}
}

func TestTheTokenIsReadAnewEachTime(t *testing.T) {
	if token("", "", hclog.NewNullLogger()) != nil {
		t.Error("a token without a file")
	}
	file := filepath.Join(t.TempDir(), "token")
	read := token(file, "", hclog.NewNullLogger())
	if _, err := read(); err == nil {
		t.Error("a file that is missing was read")
	}
	for _, secret := range []string{"one", "two"} {
		if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := read(); got != secret || err != nil {
			t.Errorf("%q %v", got, err)
		}
	}
}

// A renewed certificate is taken up; one that cannot be read leaves the former in force.
func TestARenewedCertificateIsTakenUp(t *testing.T) { synctest.Test(t, renewedCertificate) }

func renewedCertificate(t *testing.T) {
	authority := keytest.New(t)
	authority.Sign(t, "first", nil)
	authority.Sign(t, "second", nil)
	files := &config.TLSFiles{CertFile: filepath.Join(t.TempDir(), "cert"), KeyFile: filepath.Join(t.TempDir(), "key")}
	put := func(from, to string) {
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if certificate(nil, hclog.NewNullLogger()) != nil {
		t.Error("a certificate without files")
	}
	get := certificate(files, hclog.NewNullLogger())
	if own, err := get(); err == nil {
		t.Errorf("%v of files that are not there", own)
	}
	serves := func(name string) {
		t.Helper()
		time.Sleep(1100 * time.Millisecond) // files are read at most once a second
		if own, err := get(); err != nil || own.Leaf.Subject.CommonName != name {
			t.Errorf("%v serves (%v), not %s", own, err, name)
		}
	}
	first, second := authority.TLS("first"), authority.TLS("second")
	put(first.KeyFile, files.KeyFile)
	put(first.CertFile, files.CertFile)
	serves("first")
	put(second.CertFile, files.CertFile) // whose key is still to come
	serves("first")
	put(second.KeyFile, files.KeyFile)
	serves("second")
}

func TestWhatTheNodeIsMadeOfNeedsARestart(t *testing.T) {
	first, now := config.Default(), config.Default()
	now.HTTP.Listen = ":1"
	now.Watchdog.Mode = config.WatchdogRequired
	if got := needsRestart(first, now); !strings.Contains(got, "http: and watchdog: changed") {
		t.Errorf("%q", got)
	}
}

// stand makes a service known, with a node that stands by.
func stand(t *testing.T, zk, service string) {
	t.Helper()
	ensemble := election.New(election.Config{
		Servers: []string{zk}, Root: "/understudy", Timeout: 4 * time.Second, Node: election.Node{Node: "a"}, Logger: hclog.NewNullLogger(), Now: sinceStart,
	})
	stood := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- ensemble.Open(ctx, func(ctx context.Context, s *election.Session) error {
			c, _, err := s.Stand(ctx, service, "race")
			if err == nil {
				err = c.Announce(ctx, election.Member{Role: "standby", Health: "ok"})
			}
			if err != nil {
				return err
			}
			close(stood)
			<-ctx.Done()
			return nil
		})
	}()
	t.Cleanup(func() { cancel(); <-done; ensemble.Wait() })
	select {
	case <-stood:
	case err := <-done:
		done <- err
		t.Fatal(err)
	}
}

var processBegan = time.Now()

func sinceStart() time.Duration { return time.Since(processBegan) }

// One supervisor holds all that it runs in one way: a service that wants another must not be thought to have it.
func TestAServiceThatIsToBeHeldOtherwiseNeedsARestart(t *testing.T) {
	wants := func(all ...config.Contain) *config.Config {
		c := config.Default()
		c.Services = map[string]config.Service{}
		for i, contain := range all {
			s := config.DefaultService("true")
			s.Contain = contain
			c.Services[string(rune('a'+i))] = s
		}
		return c
	}
	const auto, strict, cgroup, pidns = config.ContainAuto, config.ContainStrict, config.ContainCgroup, config.ContainPidns
	for _, c := range []struct {
		first, now *config.Config
		want       string
	}{
		{wants(auto), wants(auto, pidns), "services.b.contain: changed"},
		{wants(auto), wants(auto, strict), "services.b.contain: changed"},
		{wants(pidns), wants(pidns, pidns), ""},
		{wants(auto, pidns), wants(pidns, pidns), "services.a.contain: changed"},
		{wants(cgroup), wants(cgroup, auto, strict), ""},
	} {
		if got := needsRestart(c.first, c.now); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%q, not %q", got, c.want)
		}
	}
}
