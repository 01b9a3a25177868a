package kit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/testbed/must"
)

// Fleet is many services in one file, each with accounts of its own.
type Fleet struct {
	*Play
	Names []string
	Of    map[string]*Accounts
	Keys  map[string]string // what else a service's config says
	every time.Duration     // how often a child keeps up its account
}

// Fleet is n services of a play, whose children show so often that they live.
func (p *Play) Fleet(tb testing.TB, n int, every time.Duration) *Fleet {
	tb.Helper()
	f := &Fleet{Play: p, Of: map[string]*Accounts{}, Keys: map[string]string{}, every: every}
	for i := range n {
		f.Add(tb, fmt.Sprintf("s%04d", i))
	}
	tb.Cleanup(func() {
		for _, a := range f.Of {
			a.CheckOverlap(tb)
			a.CheckTokens(tb)
		}
	})
	return f
}

// Add adds a service. It runs once the config is written, or started from.
func (f *Fleet) Add(tb testing.TB, name string) {
	tb.Helper()
	f.Names = append(f.Names, name)
	f.Of[name] = NewAccounts(tb, f.Lab)
}

// Text is a host's config.
func (f *Fleet) Text(h *Host) string {
	var b strings.Builder
	o := f.Options
	fmt.Fprintf(&b, "node: %s\nzookeeper:\n  servers: [%s]\n  root: %s\n  lease: %v\ndefaults: {grace_delay: %v}\nservices:\n",
		h.Name, strings.Join(o.ZK, ", "), o.Root, o.Session/2, o.Grace)
	for _, name := range f.Names {
		fmt.Fprintf(&b, "  %s:\n    %s\n", name, Command(f.Of[name].Child("every="+f.every.String(), "mutex="+f.Of[name].File("mutex"))))
		if more := f.Keys[name]; more != "" {
			fmt.Fprintf(&b, "    %s\n", more)
		}
	}
	return b.String()
}

// Write puts a host's config in place of the previous one, as editors do.
func (f *Fleet) Write(tb testing.TB, h *Host, dir string) string {
	tb.Helper()
	path := filepath.Join(dir, h.Name+".yaml")
	must.OK(tb, errors.Join(os.WriteFile(path+".new", []byte(f.Text(h)), 0o600), os.Rename(path+".new", path)))
	return path
}

// Serve starts a supervisor of all services on a host, and returns its config's name too.
func (f *Fleet) Serve(tb testing.TB, h *Host) (*Supervisor, string) {
	tb.Helper()
	path := f.Write(tb, h, tb.TempDir())
	return f.FromFile(tb, h, path), path
}

// AllOn waits until every service has a run on the node that began after some moment, and returns the last of them.
func (f *Fleet) AllOn(tb testing.TB, node string, after int64) (last int64) {
	tb.Helper()
	Until(tb, 2*Soon, "all services run on "+node, func() bool {
		last = 0
		for _, name := range f.Names {
			runs := f.Of[name].Runs()
			if len(runs) == 0 || runs[len(runs)-1].Node != node || runs[len(runs)-1].First <= after {
				return false
			}
			last = max(last, runs[len(runs)-1].First)
		}
		return true
	})
	return last
}

// AllStand waits until a node stands by for every service.
func (f *Fleet) AllStand(tb testing.TB, node string) {
	tb.Helper()
	Until(tb, 2*Soon, node+" stands by for all", func() bool {
		for _, name := range f.Names {
			if m, ok := f.Member(name, node); !ok || m.Role != "standby" {
				return false
			}
		}
		return true
	})
}
