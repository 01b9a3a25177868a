package cli

import (
	"path"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/election"
	"understudy/supervisor/testbed/must"
)

// Who orders what is so already reads what is otherwise than he may think.
func TestNothingToDoIsToldWithItsReason(t *testing.T) {
	addr := emptyCluster(t)
	conn, _, err := zk.Connect([]string{addr}, 10*time.Second, zk.WithLogInfo(false))
	must.OK(t, err)
	defer conn.Close()
	for _, service := range []string{"db", "web"} {
		p := election.Paths{Root: "/understudy", Service: service}.Control()
		for _, above := range []string{"/understudy", "/understudy/services", path.Dir(p)} {
			_, _ = conn.Create(above, nil, 0, zk.WorldACL(zk.PermAll))
		}
		if service == "db" {
			_, err = conn.Create(p, []byte(`{"paused": true, "by": "ann", "why": "one"}`), 0, zk.WorldACL(zk.PermAll))
			must.OK(t, err)
		}
	}
	for _, c := range []struct {
		line string
		code int
		want string
	}{
		{"start db", 0, "Nothing to do: db is not stopped. DOWN: automatic takeovers are off (paused by ann: one), so no node starts it. " +
			"To turn them on again: `understudy resume db --zk " + addr + "`\n"},
		{"start web", 0, "Nothing to do: web is not stopped. DOWN: no supervisor that has this service in its config is connected."},
		{"pause db --reason two", 0, "Nothing to do: db is paused already, and the first reason stands: paused by ann: one.\n"},
		{"pause db", 0, "Nothing to do: db is paused already.\n"},
		{"status --node db", 1, "understudy: no node \"db\": db is a service, and `understudy status db --zk " + addr + "` shows it\n"},
	} {
		code, out, errs := says(t, append(strings.Fields(c.line), "--zk", addr)...)
		if code != c.code || !strings.HasPrefix(out+errs, c.want) {
			t.Errorf("%s: %d, %q, %q", c.line, code, out, errs)
		}
	}
}
