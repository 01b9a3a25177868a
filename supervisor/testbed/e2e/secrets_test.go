package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/tick"
	"understudy/supervisor/testbed/must"
)

// secretOf is a file of one node, in a folder of its own, that holds lines.
func secretOf(t *testing.T, lines ...string) (file string, write func(lines ...string)) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "secret")
	write = func(lines ...string) {
		t.Helper()
		must.OK(t, os.WriteFile(file+".new", []byte(strings.Join(lines, "\n")+"\n"), 0o600))
		must.OK(t, os.Rename(file+".new", file))
	}
	write(lines...)
	return file, write
}

// The credentials are changed as docs/security.md says: nobody notices, the previous ones are good for nothing any more, and
// guardians that were told the previous ones still close their supervisor's session at once.
func TestZooKeeperCredentialsAreChangedWhileRunning(t *testing.T) {
	p := brief(t, stage(t))
	const was, is = "owner:formerly", "owner:from-now-on"
	type node struct {
		*kit.Supervisor
		file  string
		write func(lines ...string)
	}
	var nodes []node
	var run kit.Run
	for _, name := range []string{"a", "b"} {
		h := p.Lab.Machine(t, name)
		secret, write := secretOf(t, was)
		file := p.Config(t, h, "  auth: {scheme: digest, file: "+secret+"}\n", kit.Command(p.Child()))
		s := p.FromFile(t, h, file)
		nodes = append(nodes, node{s, file, write})
		if name == "a" {
			run = p.On(t, soon, "a", 0)
			s.TwoGuardians(t)
		} else {
			kit.Until(t, soon, "b stands by", func() bool { return s.Says("to=standby") })
		}
	}
	a, b := nodes[0], nodes[1]
	said := func(n node, times int, words string) {
		t.Helper()
		kit.Until(t, soon, n.Host.Name+" says: "+words, func() bool { return strings.Count(n.Log(), words) >= times })
	}
	repair := func(n node, words string) {
		t.Helper()
		if r := n.Host.Ask(t, "check", "--repair-acl", "--config", n.file); r.Code != 0 || !strings.Contains(r.Out, words) {
			t.Errorf("repair: %+v", r)
		}
	}

	a.write(is) // too early
	a.Signal(syscall.SIGHUP)
	said(a, 1, "the previous credentials stay in force")
	kit.Until(t, soon, "the status says so", func() bool {
		r := b.Host.Ask(t, "status", "--config", b.file, "--json")
		return r.Code == 0 && strings.Contains(r.Out, "not taken up") && !strings.Contains(r.Out, "from-now-on")
	})
	for i, n := range nodes {
		n.write(was, is)
		if i == 0 {
			n.Signal(syscall.SIGHUP) // the other one looks by itself
		}
		said(n, 1, "sending changed credentials")
	}
	repair(a, "repaired: "+p.Options.Root+"\n")
	for _, n := range nodes {
		n.write(is)
		said(n, 2, "sending changed credentials")
	}
	repair(b, "repaired: "+p.Options.Root+"\n")
	repair(a, "0 of")

	previous := kit.Look(t, p.Options.ZK, p.Options.Root).Conn()
	must.OK(t, previous.AddAuth("digest", []byte(was)))
	if _, _, err := previous.Get(p.Options.Root); !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("the former credentials are still good: %v", err)
	}
	secret, writeLate := secretOf(t, was)
	h := p.Lab.Machine(t, "c")
	late := p.FromFile(t, h, p.Config(t, h, "  auth: {scheme: digest, file: "+secret+"}\n", kit.Command(p.Child())))
	kit.Until(t, soon, "who comes with the former ones is not let in", func() bool { return late.Says("cannot open a usable ZooKeeper session", "not authenticated") })
	writeLate(is)
	kit.Until(t, 2*soon, "it is, with the new ones", func() bool { return late.Says("to=standby") })
	late.Stop(t)
	p.Alone(t, session, "a") // for longer than a lease
	p.Untouched(t, run)
	p.Succeeds(t, time.Second, "b", run.First, a.Kill9) // the guardians close the session
	for _, n := range nodes {
		if strings.Contains(n.Log(), "formerly") || strings.Contains(n.Log(), "from-now-on") {
			t.Errorf("%s's log holds a secret", n.Host.Name)
		}
	}
}

// While the agents' secret is being changed, nodes that are a step apart fence one another.
func TestAgentSecretIsChangedWhileRunning(t *testing.T) {
	p := brief(t, stage(t))
	p.Options.Grace = longGrace
	const was, is = "the secret as it was before", "the secret that is to be now"
	text := func(lines ...string) (string, func(lines ...string)) {
		file, write := secretOf(t, lines...)
		return fmt.Sprintf("fencing: {agent: {listen: \":%s\", secret_file: %q}}\n", agentPort, file), write
	}
	one, writeOne := text(was)
	other, writeOther := text(was)
	a, b, run := p.twoAgents(t, p.Lab.Host(t, "a"), p.Lab.Host(t, "b"), one, other)
	writeOne(was, is)
	writeOther(is, was)
	deleted := p.Deleted(t, "services", p.Options.Service, "ActiveStandbyElectorLock")
	a.Host.CutFrom(t, p.Addrs()...)
	at := tick.Now()
	<-deleted
	free := time.Duration(tick.Now() - at)
	next := p.On(t, soon, "b", run.First)
	t.Logf("succeeded after %v, the lock was free after %v", time.Duration(next.First-at), free)
	p.fencedBy(t, b.Host, "agent")
}

// What is secret stands in its files and in memory: in no log, however talkative, no status, no znode, no environment, no
// argument and no descriptor of a child.
func TestSecretsAreNowhereElse(t *testing.T) {
	p := brief(t, stage(t))
	p.Options.Grace = longGrace // the agent is to be quicker
	const zk, agent, token = "the-password-of-zookeeper", "the-secret-of-all-agents", "the-token-of-http"
	zkFile, _ := secretOf(t, "owner:"+zk)
	agentFile, _ := secretOf(t, agent)
	tokenFile, _ := secretOf(t, token)
	config := fmt.Sprintf("  auth: {scheme: digest, file: %s}\nlog: {level: trace}\nhttp: {listen: \":8437\", token_file: %s}\nfencing: {agent: {listen: \":%s\", secret_file: %s}}\n",
		zkFile, tokenFile, agentPort, agentFile)
	a, b := p.Lab.Host(t, "a"), p.Lab.Host(t, "b")
	file := p.Config(t, a, config, kit.Command(p.Child()))
	one := p.FromFile(t, a, file)
	run := p.On(t, soon, "a", 0)
	other := p.FromFile(t, b, p.Config(t, b, config, kit.Command(p.Child())))
	kit.Until(t, soon, "b stands by", func() bool { return other.Says("to=standby") })
	guardians := one.TwoGuardians(t)

	texts := map[string]string{
		"status":    a.Ask(t, "status", "--json", "--config", file).Out,
		"history":   a.Ask(t, "history", "--json", "--config", file).Out,
		"effective": a.Ask(t, "check", "--effective", "--config", file).Out,
	}
	for _, path := range []string{"/metrics", "/api/v1/status", "/"} {
		_, texts[path] = get(t, "http://"+a.Addr+":8437"+path)
	}
	for _, pid := range append(guardians, one.Pid, run.Pid) {
		for _, name := range []string{"environ", "cmdline"} {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
			must.OK(t, err)
			texts[fmt.Sprint(name, " of ", pid)] = string(text)
		}
	}
	friend := kit.Look(t, p.Options.ZK, p.Options.Root).Conn()
	must.OK(t, friend.AddAuth("digest", []byte("owner:"+zk)))
	for _, path := range tree(t, friend, p.Options.Root) {
		text, _, err := friend.Get(path)
		must.OK(t, err)
		texts[path] = string(text)
	}
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", run.Pid))
	must.OK(t, err)
	if len(links) < 3 {
		t.Errorf("the child has the descriptors %v", links)
	}
	for _, link := range links {
		to, _ := os.Readlink(link) // it may be closed by now
		if strings.HasPrefix(to, "socket:") || strings.Contains(to, "secret") || strings.Contains(to, "watchdog") {
			t.Errorf("the child has %s", to)
		}
	}
	at := tick.Now()
	one.Host.CutFrom(t, p.Addrs()...)
	p.On(t, soon, "b", at)
	p.fencedWith(t, b, "agent", "--config", file)
	texts["a's log"], texts["b's log"] = one.Log(), other.Log()
	if len(texts) < 20 {
		t.Errorf("only %d places", len(texts))
	}
	for name, text := range texts {
		if text == "" && !strings.HasPrefix(name, "/") {
			t.Errorf("%s is empty", name)
		}
		for _, secret := range []string{zk, agent, token} {
			if strings.Contains(text, secret) {
				t.Errorf("%s holds %s", name, secret)
			}
		}
	}
}
