package programs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
)

// closed has the firewall of a host drop what comes from others to its Redis, of what also matches, and what goes to them, if all does;
// what it returns ends that.
func closed(t *testing.T, h *kit.Host, from []*kit.Host, matches string) (reopen func()) {
	t.Helper()
	var addrs []string
	for _, other := range from {
		addrs = append(addrs, other.Addr)
	}
	others := "{" + strings.Join(addrs, ", ") + "}"
	rules := "chain in {\ntype filter hook input priority 0;\nip saddr " + others + " tcp dport 6379 " + matches + " drop\n}\n"
	if matches == "" {
		rules += "chain out {\ntype filter hook output priority 0;\nip daddr " + others + " tcp sport 6379 drop\n}\n"
	}
	nft(t, h, "table inet closed {\n"+rules+"}\n")
	return func() { t.Helper(); nft(t, h, "delete table inet closed\n") }
}

// A primary that is well, and that the others do not reach, is given to one of them, and nothing is lost. Where the others lack data it stays.
func TestARedisThatOthersDoNotReachIsGivenToThem(t *testing.T) {
	r := redisTrio(t, "      follow: [sh", "      seen_by: {tcp: \"$UNDERSTUDY_ACTIVE_ADDRESS:6379\", interval: 500ms, timeout: 500ms, failures: 3}\n      follow: [sh",
		"    stop_timeout: 15s", "    restart: {rejoin_after: 5s}\n    stop_timeout: 15s")
	r.calm(t)
	p := r.begin(t)
	began := time.Now()
	reopen := closed(t, p, r.others(p), "tcp flags & (syn | ack) == syn") // to new connections
	now := r.failed(t, "port closed to the others", p)
	t.Logf("it moved %v after that", time.Since(began).Round(time.Millisecond))
	told := r.a.Ask(t, "history", "redis", "--json", "--zk", strings.Join(r.Servers, ","), "--root", r.root)
	var names []string
	for _, h := range r.others(p) {
		names = append(names, h.Name)
	}
	slices.Sort(names)
	if want := "not reachable; for 2 of 2: " + strings.Join(names, ", "); !strings.Contains(told.Out, want) {
		t.Errorf("the history has no %q:\n%s", want, told.Out)
	}
	reopen()
	if p = r.primary(t); p != now {
		t.Errorf("%s is active, not %s", p.Name, now.Name)
	}

	// Nothing comes through any more, also no data: clients write on, so no other copy is fit.
	was := fmt.Sprint(r.heads(p))
	reopen = closed(t, p, r.others(p), "")
	why := "not reachable for 2 of 2: "
	kit.Until(t, soon, "the others say so", func() bool {
		m, _ := r.Member(r.service, p.Name)
		return strings.HasPrefix(m.Why, why)
	})
	time.Sleep(10 * time.Second)
	var said string
	wants := []string{why, p.Name + ": primary, position ", " behind, does not reach the primary (tcp " + p.Addr + ":6379: "}
	if !kit.Reached(soon, func() bool { // a copy that has just been ill, as after a standstill, has nothing to say
		said = r.a.Ask(t, "status", "redis", "--zk", strings.Join(r.Servers, ","), "--root", r.root).Out
		m, _ := r.Member(r.service, p.Name)
		return m.Health == "ok" && strings.HasPrefix(m.Why, why) && !slices.ContainsFunc(wants, func(want string) bool {
			return !strings.Contains(strings.Join(strings.Fields(said), " "), want)
		})
	}) {
		t.Errorf("the status has not all of %q", wants)
	}
	t.Logf("\n%s", said)
	if m, _ := r.Member(r.service, p.Name); fmt.Sprint(r.heads(p)) != was || m.Role != "active" {
		t.Errorf("the servers were %s, and are %v: %+v", was, r.heads(p), m)
	}
	reopen()
	if now := r.primary(t); now != p {
		t.Errorf("%s is active, not %s", now.Name, p.Name)
	}
	r.l.Check(t, p.Addr+":6379")
}
