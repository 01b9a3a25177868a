package runas

import (
	"os"
	"slices"
	"testing"
)

func TestProgramInheritsWhatItIsToInherit(t *testing.T) {
	t.Setenv("TOKEN", "of the supervisor")
	t.Setenv("LEFT", "yes")
	t.Setenv("PATH", "/mine")
	systemds := []string{"LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "WATCHDOG_USEC", "WATCHDOG_PID", "NOTIFY_SOCKET"}
	for _, name := range systemds {
		t.Setenv(name, "1")
	}
	t.Setenv("LISTEN_ADDR", "0.0.0.0")
	t.Setenv("WATCHDOG_URL", "http://watch")
	for _, c := range []struct{ names, want []string }{
		{[]string{}, []string{"PATH=" + defaultPath}},
		{[]string{"LEFT", "NONE", "NOTIFY_SOCKET"}, []string{"LEFT=yes", "PATH=" + defaultPath}},
		{[]string{"PATH"}, []string{"PATH=/mine"}},
	} {
		got := Inherited(c.names)
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%q: %q", c.names, got)
		}
	}
	all := Inherited(nil)
	if len(all) != len(os.Environ())-len(systemds) {
		t.Errorf("all: %q", all)
	}
	for _, kept := range []string{"TOKEN=of the supervisor", "LISTEN_ADDR=0.0.0.0", "WATCHDOG_URL=http://watch"} {
		if !slices.Contains(all, kept) {
			t.Errorf("without %s: %q", kept, all)
		}
	}
}
