package need

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
)

// stub is a test that tells how it ended.
type stub struct {
	testing.TB
	end string
}

func (*stub) Helper() {}
func (s *stub) Skipf(format string, args ...any) {
	s.end = "skip: " + fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (s *stub) Fatalf(format string, args ...any) {
	s.end = "fail: " + fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// ended is how a test ends that needs these things, and goes on to its end if it may.
func ended(t *testing.T, things ...string) string {
	s := &stub{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		These(s, things...)
		s.end = "ran"
	}()
	<-done
	return s.end
}

func TestWhatThisMachineLacksIsSkippedAndInCIAFailure(t *testing.T) {
	const absent = "no-such-command"
	for _, c := range []struct {
		ci     string
		things []string
		want   string
	}{
		{"", []string{"sh"}, "ran"},
		{"true", []string{"sh"}, "ran"},
		{"", []string{"sh", absent}, "skip: "},
		{"true", []string{"sh", absent}, "fail: "},
	} {
		t.Setenv("CI", c.ci)
		if end := ended(t, c.things...); !strings.HasPrefix(end, c.want) || c.want != "ran" && !strings.Contains(end, absent) {
			t.Errorf("CI=%s, %q: %s", c.ci, c.things, end)
		}
	}
}

func TestRootIsFoundByWhoRunsTheTests(t *testing.T) {
	if Has("root") != (os.Geteuid() == 0) {
		t.Errorf("root: %v, as user %d", Has("root"), os.Geteuid())
	}
}
