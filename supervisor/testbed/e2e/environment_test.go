package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"understudy/supervisor/testbed/kit"
)

// The names that systemd defines for sockets, watchdog and notification are meant for the supervisor, and only these: what else is
// inherited arrives, and whatever `env` says does.
func TestAProgramGetsAllButWhatSystemdMeansForTheSupervisor(t *testing.T) {
	for name, value := range map[string]string{
		"LISTEN_FDS": "1", "LISTEN_PID": "1", "LISTEN_FDNAMES": "x", "WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1", "NOTIFY_SOCKET": "none",
		"LISTEN_ADDR": "0.0.0.0", "WATCHDOG_URL": "http://watch",
	} {
		t.Setenv(name, value)
	}
	p := newPlay(t, stage(t))
	facts := filepath.Join(t.TempDir(), "facts")
	script := `env | grep -e LISTEN -e WATCHDOG -e NOTIFY | sort >` + facts + `.new; mv ` + facts + `.new ` + facts + `; exec sleep 1000`
	s := p.serveAlone(t, "command: [sh, -c, '"+script+"']", `env: {LISTEN_PORT: "80", LISTEN_FDNAMES: ours, WATCHDOG_USEC: "5"}`)
	var text []byte
	kit.Until(t, soon, "the program tells", func() bool { var err error; text, err = os.ReadFile(facts); return err == nil })
	want := "LISTEN_ADDR=0.0.0.0 LISTEN_FDNAMES=ours LISTEN_PORT=80 WATCHDOG_URL=http://watch WATCHDOG_USEC=5"
	if got := strings.Join(strings.Fields(string(text)), " "); got != want {
		t.Errorf("the program got\n%s\nwanted\n%s", got, want)
	}
	s.Stop(t)
}
