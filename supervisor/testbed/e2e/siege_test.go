package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// Idle and slow connections, guesses at the token, garbage at the agent and at a program's socket, all at once: no extension of the lease
// is late, nothing restarts, a load balancer at another address is answered each time, and the log stays short. It is not parallel: it
// takes the machine.
func TestASiegeDelaysNoLease(t *testing.T) {
	p := brief(t, stage(t), "notify=1")
	h := p.Lab.Host(t, "a")
	token := filepath.Join(t.TempDir(), "token")
	must.OK(t, os.WriteFile(token, []byte("a token that nobody has guessed yet\n"), 0o600))
	keys := withAgent(t, sharedSecret) + fmt.Sprintf("http: {listen: \":8437\", token_file: %q}\n", token)
	a := p.FromFile(t, h, p.Config(t, h, keys, kit.Command(p.Options.Child), "ready: {notify: true, timeout: 1m}"))
	run := p.On(t, soon, "a", 0)
	at := h.Addr + ":8437"
	balancer := http.Client{Timeout: soon, Transport: &http.Transport{DisableKeepAlives: true}}
	active := func() bool {
		r, err := balancer.Get("http://" + at + "/active/" + p.Options.Service)
		if err != nil {
			t.Log(err)
			return false
		}
		r.Body.Close()
		return r.StatusCode == http.StatusOK
	}
	kit.Until(t, soon, "a is active, and ready", active)
	calm := leastLeft(t, at, session/2)
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", run.Pid))
	must.OK(t, err)
	_, socket, _ := strings.Cut("\x00"+string(environ), "\x00NOTIFY_SOCKET=")
	socket, _, _ = strings.Cut(socket, "\x00")

	stop, spoils := make(chan struct{}), make(chan *kit.Spoils)
	began, stood, said := time.Now(), kit.Stood(t), strings.Count(a.Log(), "\n")
	go func() {
		spoils <- h.Besiege(kit.Siege{
			HTTP: "8437", Sources: 8, Hold: 200, Agent: agentPort, Garbage: bytes.Repeat([]byte{0, 0, 0, 64, 'x'}, 40), Notify: socket,
		}, stop)
	}()
	least, asked := time.Hour, 0
	kit.Throughout(t, 2*session, "a load balancer is answered", func() bool {
		if left, ok := remaining(t, at); ok {
			least, asked = min(least, left), asked+1
		}
		return active()
	})
	still := stood()
	close(stop)
	t.Logf("%v; of the lease at least %v were left, %v without them, seen %d times; the machine stood still for %v", <-spoils, least, calm, asked, still)
	if least+still < calm/2 || asked == 0 {
		t.Error("the lease was extended late")
	}
	p.Untouched(t, run)
	if lines, limit := strings.Count(a.Log(), "\n")-said, 5*int(time.Since(began).Seconds())+10; lines > limit {
		t.Errorf("%d lines in the log, of %d allowed", lines, limit)
	}
}
