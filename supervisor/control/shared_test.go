package control

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/testbed/must"
)

func (b *bed) link() *SharedCluster {
	l := NewSharedCluster(election.Config{Servers: []string{b.addr}, Root: root, Lease: 2 * time.Second, Logger: hclog.NewNullLogger()})
	b.Cleanup(l.Close)
	return l
}

func TestALinkSaysWhatTheClusterSays(t *testing.T) {
	b := newBed(t)
	b.session().member("db", "a", "standby", "")
	l := b.link()
	if changed, err := l.Pause(t.Context(), "db", true, "somebody", "new disks"); err != nil || !changed {
		t.Errorf("pause: %v %v", changed, err)
	}
	got, err := l.Status(t.Context())
	must.OK(t, err)
	if diff := cmp.Diff(b.status(), got); diff != "" || len(got.Services) != 1 || !strings.Contains(got.Services[0].Order, "paused by somebody: new disks") {
		t.Errorf("%+v %s", got, diff)
	}
	if list, err := l.History(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("history: %v %v", list, err)
	}
}

func TestAConnectionThatFailsIsMadeAnew(t *testing.T) {
	l := newBed(t).link()
	if _, err := l.Status(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := l.cluster
	if _, err := l.Status(t.Context(), "x"); !errors.Is(err, ErrUnknown) || l.cluster != first {
		t.Errorf("%v, and the connection is kept: %v", err, l.cluster == first)
	}
	broken := errors.New("broken")
	if err := l.with(t.Context(), func(*Cluster) error { return broken }); !errors.Is(err, broken) || l.cluster != nil {
		t.Errorf("%v, and the connection is kept: %v", err, l.cluster != nil)
	}
	if _, err := l.Status(t.Context()); err != nil || l.cluster == first {
		t.Errorf("%v", err)
	}
}
