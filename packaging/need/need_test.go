package need

import (
	"runtime"
	"testing"
)

// stub is a test that is left out.
type stub struct{ testing.TB }

func (stub) Helper()              {}
func (stub) Skipf(string, ...any) { runtime.Goexit() }

func TestOnlyWhatIsAskedForIsTested(t *testing.T) {
	for list, want := range map[string]bool{"": false, "root": true, "all": true, "zookeeper,root": true, "roots": false, "zookeeper": false} {
		t.Setenv(variable, list)
		if got := Asked("root"); got != want {
			t.Errorf("%q: %v", list, got)
		}
	}
	t.Setenv(variable, "zookeeper")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		These(stub{t}, "zookeeper", "kazoo", "root")
		t.Error("it runs without kazoo")
	}()
	<-ended
	if len(leftOut) != 1 || leftOut["kazoo"] != 1 {
		t.Errorf("left out: %v", leftOut)
	}
	clear(leftOut)
}
