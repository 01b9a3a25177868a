package e2e

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// pair is two machines that install the package as the README says, and one with Debian's own ZooKeeper, which they know as zk1.
type pair struct {
	accounts     *kit.Accounts
	cluster      *kit.Cluster
	zk, one, two *machine
}

func newPair(t *testing.T) *pair {
	t.Helper()
	need.These(t, "nspawn")
	var images sync.WaitGroup
	images.Go(func() { _, _ = zookeeper() }) // what fails, the boot says
	dir := packages(t, buildOlder)
	images.Wait()
	lab := kit.NewLab(t)
	host := lab.Host(t, "zk1")
	p := &pair{accounts: kit.NewAccounts(t, lab), zk: boot(t, host, zookeeper, nil, func(string) {})}
	for _, line := range commands(t, installDoc, "zookeeper")[1:] { // the first one made the disk
		p.zk.do(t, "sh", "-c", line)
	}
	kit.Until(t, time.Minute, "ZooKeeper has started", func() bool {
		conn, err := net.Dial("tcp", host.Addr+":2181")
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	p.cluster = kit.Look(t, []string{host.Addr + ":2181"}, "/understudy")
	child := p.accounts.Child("every=2ms", "daemons=2")
	binds := []string{p.accounts.File("") + ":/srv/accounts", lab.Lifeline() + ":/srv/life"}
	words := append([]string{"/usr/local/bin/child", "dir=/srv/accounts", "life=/srv/life"}, child[3:]...)
	prepare := func(root string) {
		put := func(name, text string, mode os.FileMode) {
			must.OK(t, os.WriteFile(filepath.Join(root, name), []byte(text), mode))
		}
		put("usr/local/bin/hello", "#!/bin/sh\necho '"+forged+"'\nexec "+strings.Join(words, " ")+"\n", 0o755)
		put("usr/local/bin/my-server", "#!/bin/sh\nexec sleep 1000\n", 0o755)
		put("etc/hosts", "127.0.0.1 localhost\n"+host.Addr+" zk1 zk2 zk3\n", 0o644)
		err := run(exec.Command("cp", child[0], filepath.Join(root, "usr/local/bin/child")))
		if err == nil {
			err = run(exec.Command("cp", file(t, dir, "*_"+runtime.GOARCH+".deb"), filepath.Join(root, "root")))
		}
		must.OK(t, err)
	}
	p.one = boot(t, lab.Host(t, "one"), debian, binds, prepare)
	p.two = boot(t, lab.Host(t, "two"), debian, binds, prepare)
	return p
}

// active is the machine that a run is on, and other the one that it is not on.
func (p *pair) active(r kit.Run) (active, other *machine) {
	if r.Node == p.one.Name {
		return p.one, p.two
	}
	return p.two, p.one
}

// settled waits until one machine runs the program and has its lock, and the other one stands by, all at the same time.
func (p *pair) settled(t *testing.T) (active, other *machine, run kit.Run) {
	t.Helper()
	kit.Until(t, 40*time.Second, "one machine runs it and the other one stands by", func() bool {
		running := p.accounts.Running() // one that has just ended counts, too
		if len(running) != 1 {
			return false
		}
		run = running[0]
		active, other = p.active(run)
		lock, _ := p.cluster.Lock("hello")
		member, _ := p.cluster.Member("hello", other.Name)
		return lock.Czxid == run.Token && member.Role == "standby"
	})
	return active, other, run
}

// over waits until the other machine runs the program, and tells for how long nobody did.
func (p *pair) over(t *testing.T, how string, previous kit.Run, other *machine, limit time.Duration) {
	t.Helper()
	next := p.accounts.On(t, limit, other.Name, previous.First)
	runs := p.accounts.Runs()
	for i, r := range runs {
		if r.ID == next.ID {
			previous = runs[i-1]
		}
	}
	t.Logf("%s: after %v the other machine runs it", how, kit.Gap(previous, next).Round(time.Millisecond))
}
