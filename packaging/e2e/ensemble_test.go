package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

const zookeeperDoc = "../../docs/zookeeper.md"

// member is a Debian with what the page about ZooKeeper installs first, and what Ansible needs on each machine.
var member image = sync.OnceValues(func() (layers string, err error) {
	lines, err := typed(zookeeperDoc, "ensemble")
	if err != nil {
		return "", err
	}
	return installed("member", lines[0]+" python3-apt")
})

func TestAnEnsembleIsMadeAndMendedAsThePageSays(t *testing.T) {
	need.These(t, "nspawn")
	lab := kit.NewLab(t)
	hosts, names := make([]*kit.Host, 3), "127.0.0.1 localhost\n"
	for i := range hosts {
		hosts[i] = lab.Host(t, fmt.Sprintf("zk%d", i+1))
		names += hosts[i].Addr + " " + hosts[i].Name + "\n"
	}
	machines := make([]*machine, 3)
	for i, host := range hosts {
		machines[i] = boot(t, host, member, nil, func(root string) {
			err := run(exec.Command("cp", kit.UnderstudyBinary(t), filepath.Join(root, "usr/local/bin/understudy")))
			for name, text := range map[string]string{
				"etc/hosts":      names,
				"root/look.yaml": "node: n\nzookeeper: {servers: [\"zk1:2181\", \"zk2:2181\", \"zk3:2181\"], lease: 2s, trusted_network: true}\nservices: {web: {command: [sleep, infinity]}}\n",
			} {
				if err == nil {
					err = os.WriteFile(filepath.Join(root, name), []byte(text), 0o644)
				}
			}
			must.OK(t, err)
		})
	}
	text, err := block(zookeeperDoc, "ensemble")
	must.OK(t, err)
	_, rest, _ := strings.Cut(text, "\n") // the first line made the disk
	for _, m := range machines {
		m.do(t, "sh", "-ec", rest)
	}
	line := commands(t, zookeeperDoc, "look")[0] + " --config /root/look.yaml"
	look := func() string {
		out, _ := machines[0].try("sh", "-c", line) // a server may be down
		return out
	}
	whole := func() bool {
		out := look()
		return strings.Count(out, ", follower, tick 500ms, grants sessions of 1s to 10s\n") == 2 && strings.Count(out, ", leader, tick 500ms,") == 1
	}
	kit.Until(t, time.Minute, "three servers are an ensemble", whole)
	out := look()
	if strings.Contains(out, "warning") || strings.Contains(out, "error") || !strings.Contains(out, "note: 3 servers: services keep running while 1 of them cannot be reached\n") {
		t.Errorf("%s", out)
	}
	// A server that dies comes back, and one whose folder is empty gets all from the others.
	machines[1].do(t, "systemctl", "kill", "--signal=KILL", "zookeeper")
	kit.Until(t, time.Minute, "the server that was killed is back", whole)
	text, err = block(zookeeperDoc, "replace")
	must.OK(t, err)
	machines[2].do(t, "sh", "-ec", text)
	kit.Until(t, time.Minute, "the server with an empty folder is back", whole)
	t.Logf("%s", look())
}
