package zktest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy/election/jute"
	"understudy/packaging/need"
	"understudy/supervisor/testbed/must"
)

func ready(t *testing.T, e *Ensemble) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	must.OK(t, e.WaitReady(ctx))
}

func dial(t *testing.T, addr string, hello jute.ConnectRequest) *Raw {
	t.Helper()
	r, err := DialRaw(addr, hello)
	must.OK(t, err)
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func TestServersAreOfTheJarsThatAreAskedFor(t *testing.T) {
	need.These(t, "zookeeper", "zookeeper-3.9")
	kept, err := os.UserCacheDir()
	must.OK(t, err)
	for _, folder := range []string{"", filepath.Join(kept, "understudy", "zookeeper-3.9")} {
		t.Setenv("ZOOKEEPER_JARS", folder)
		e := Start(t, Config{})
		said, err := e.FourLetter(0, "srvr")
		if want := "Zookeeper version: " + Version() + "-"; err != nil || !strings.HasPrefix(said, want) || folder != "" && !strings.HasPrefix(Version(), "3.9.") {
			t.Errorf("%q, not %q; %v", said, want, err)
		}
	}
}

func TestAStandaloneServerKeepsItsDataOverARestartAndLosesItWhenWiped(t *testing.T) {
	e := Start(t, Config{})
	c := dial(t, e.ClientAddrs()[0], jute.ConnectRequest{Timeout: 5000})
	if _, err := c.Call(jute.OpCreate, jute.Create{Path: "/kept", ACL: jute.WorldACL(jute.PermAll)}, nil); err != nil {
		t.Fatal(err)
	}
	exists := func() error {
		c := dial(t, e.ClientAddrs()[0], jute.ConnectRequest{Timeout: 5000})
		_, err := c.Call(jute.OpExists, jute.PathWatch{Path: "/kept"}, nil)
		return err
	}
	must.OK(t, e.Restart(0))
	ready(t, e)
	if err := exists(); err != nil {
		t.Fatalf("after a restart: %v", err)
	}
	if err := e.Wipe(0); err == nil {
		t.Fatal("a running server was wiped")
	}
	must.OK(t, errors.Join(e.Stop(0), e.Wipe(0), e.StartServer(0)))
	ready(t, e)
	if err := exists(); !errors.Is(err, jute.NoNode) {
		t.Fatalf("after a wipe: %v", err)
	}
}

func TestRequestsCountsWhatClientsSendAndNotItsOwnQuestions(t *testing.T) {
	e := Start(t, Config{})
	count := func() int64 {
		t.Helper()
		n, err := e.Requests()
		must.OK(t, err)
		return n
	}
	before := count()
	if again := count(); again != before {
		t.Fatalf("asking changed the count from %d to %d", before, again)
	}
	c := dial(t, e.ClientAddrs()[0], jute.ConnectRequest{Timeout: 5000})
	for range 10 {
		if _, err := c.Call(jute.OpPing, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if got := count() - before; got != 11 {
		t.Fatalf("a handshake and 10 pings count as %d", got)
	}
}
