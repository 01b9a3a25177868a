package programs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/election"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// The whole of ZooKeeper is gone for three sessions. With failsafe a healthy primary takes writes all the time, and its followers follow.
func TestAPrimaryOfRedisGoesOnWithoutZooKeeper(t *testing.T) {
	r := redisTrio(t)
	secret := filepath.Join(kit.Open(t, t.TempDir()), "agent.secret")
	must.OK(t, os.WriteFile(secret, []byte("a secret that all of them share\n"), 0o600))
	for _, h := range r.hosts {
		text, err := os.ReadFile(r.files[h.Name])
		must.OK(t, err)
		agent := fmt.Sprintf("fencing: {agent: {listen: %q, secret_file: %q}}\nservices:\n", h.Addr+":8438", secret)
		config := strings.NewReplacer("\nservices:\n", "\n"+agent, "    stop_timeout:", "    on_zookeeper_loss: failsafe\n    stop_timeout:").Replace(string(text))
		must.OK(t, os.WriteFile(r.files[h.Name], []byte(config), 0o644))
	}
	p := r.begin(t)
	kit.Until(t, soon, "the record lists the others", func() bool {
		var crumb struct{ Failsafe election.Failsafe }
		data, _, err := r.Conn().Get(r.Path("services", r.service, "ActiveBreadCrumb"))
		return err == nil && json.Unmarshal(data, &crumb) == nil && len(crumb.Failsafe.Members) == 2
	})
	before := r.heads(p)
	r.l.Longest()
	must.OK(t, r.ZK.Kill(0))
	away := time.After(3 * session)
	kit.Until(t, soon, "it is told", func() bool { return r.sups[p.Name].Says("failsafe", r.service) })
	<-away
	for _, h := range r.others(p) {
		if _, follows, err := r.state(h.Addr+r.port, p.Addr); !follows {
			t.Errorf("%s does not follow %s: %v", h.Name, p.Name, err)
		}
	}
	must.OK(t, r.ZK.StartServer(0))
	r.Ready(t)
	kit.Until(t, soon, "the end of it is told", func() bool { return r.sups[p.Name].Says("failsafe is over") })
	gap := r.l.Longest()
	t.Logf("no write was acknowledged for %v", gap)
	if gap > time.Second+kit.Stall {
		t.Errorf("no write was acknowledged for %v", gap)
	}
	if now := r.primary(t); now != p || !slices.Equal(before, r.heads(p)) {
		t.Errorf("%s was the primary, and %s is; its server was %v, and is %v", p.Name, now.Name, before, r.heads(p))
	}
	r.l.Check(t, p.Addr+r.port)
	r.sups[p.Name].Kill9()
	r.failed(t, "supervisor killed", p)
}
