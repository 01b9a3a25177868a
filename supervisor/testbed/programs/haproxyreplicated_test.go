package programs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/watch"
	"understudy/supervisor/testbed/must"
)

// through runs the example's HAProxy before the copies, on a host of its own, and returns where it listens, less the port.
func (r *trio) through(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../examples/haproxy-replicated.cfg")
	must.OK(t, err)
	front := r.Lab.Host(t, "client")
	swaps := []string{"127.0.0.1:", front.Addr + ":"}
	for i, h := range r.hosts {
		swaps = append(swaps, fmt.Sprintf("10.0.0.%d:", i+1), h.Addr+":")
	}
	file := filepath.Join(t.TempDir(), "haproxy.cfg")
	must.OK(t, os.WriteFile(file, []byte(strings.NewReplacer(swaps...).Replace(string(text))), 0o644))
	r.beside(t, front, "/usr/sbin/haproxy", "-db", "-f", file)

	recipes, err := os.ReadFile("../../../docs/recipes.md")
	must.OK(t, err)
	_, rest, _ := strings.Cut(string(recipes), "```ini\n")
	conf, _, ok := strings.Cut(rest, "```\n")
	if !ok || !strings.Contains(conf, "127.0.0.1 port=5000") {
		t.Fatalf("docs/recipes.md has no PgBouncer: %s", conf)
	}
	dir := kit.Open(t, t.TempDir())
	users := filepath.Join(dir, "users")
	must.OK(t, os.WriteFile(users, []byte("\"postgres\" \"\"\n"), 0o644))
	file = filepath.Join(dir, "pgbouncer.ini")
	conf = strings.Replace(strings.Replace(conf, "shop =", "postgres =", 1), "127.0.0.1", front.Addr, 1)
	must.OK(t, os.WriteFile(file, []byte(conf+"listen_addr = "+front.Addr+"\nauth_type = trust\nauth_file = "+users+"\nunix_socket_dir =\n"), 0o644))
	r.beside(t, front, "setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", "/usr/sbin/pgbouncer", "-q", file)
	return front.Addr
}

// beside runs a program on a host until the test ends.
func (r *trio) beside(t *testing.T, h *kit.Host, words ...string) {
	t.Helper()
	cmd := h.Command(words[0], words[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	must.OK(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

// The example's ports lead writers to the primary, and readers to copies that are near enough, or have every acknowledged write.
func TestHAProxyFindsTheCopyThatAClientOfPostgreSQLNeeds(t *testing.T) {
	need.These(t, "pgbouncer")
	r := postgresTrio(t, "      LANG: C.UTF-8\n", "      LANG: C.UTF-8\n      PGSYNC: FIRST 1\n")
	p := r.begin(t)
	front := r.through(t)
	// whose is the host that answers at a port; nil: nobody does.
	whose := func(port string) *kit.Host {
		conn, err := watch.OpenPostgres(front+port, watch.AnswerWithin)
		if err != nil {
			return nil
		}
		defer conn.Close()
		for i, h := range r.hosts {
			said, err := conn.Query("SELECT (host(inet_server_addr()) = '" + h.Addr + "')::int")
			if err == nil && len(said) == 1 && said[0] == 1 {
				return r.hosts[i]
			}
		}
		return nil
	}
	// exact is the first in the list that is not the primary.
	exact := func() *kit.Host {
		for _, h := range r.hosts {
			if h != p {
				return h
			}
		}
		return nil
	}
	leads := func(when string) {
		t.Helper()
		kit.Until(t, soon, "writers reach the primary: "+when, func() bool { return whose(":5000") == p && whose(":6432") == p })
		kit.Until(t, soon, "readers reach both followers: "+when, func() bool {
			one, other := whose(":5001"), whose(":5001")
			return one != nil && other != nil && one != other && one != p && other != p
		})
		kit.Until(t, soon, "the copy that has all is reached: "+when, func() bool {
			for range 5 {
				if whose(":5002") != exact() {
					return false
				}
			}
			return true
		})
	}
	leads("start")
	r.order(t, "switchover", r.service, "--to", exact().Name)
	p = r.primary(t)
	leads("switchover")
	r.sups[p.Name].Kill9()
	p = r.failed(t, "supervisor killed", p)
	kit.Until(t, soon, "writers reach the next primary", func() bool { return whose(":5000") == p && whose(":6432") == p })

	for _, h := range r.others(p) {
		if r.sups[h.Name].Running() {
			r.sups[h.Name].Stop(t)
		}
	}
	kit.Until(t, soon, "without followers, readers reach the primary", func() bool { return whose(":5001") == p && whose(":5002") == p })
}
