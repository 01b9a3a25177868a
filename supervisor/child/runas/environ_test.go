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
	t.Setenv("NOTIFY_SOCKET", "/run/systemd/notify")
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
	if all := Inherited(nil); len(all) != len(os.Environ())-1 || !slices.Contains(all, "TOKEN=of the supervisor") {
		t.Errorf("all: %q", all)
	}
}
