package supervisor

import (
	"testing"

	"github.com/hashicorp/go-hclog"
)

// What a supervisor leaves is found by the next one, whatever has become of the list of servers.
func TestTheListOfServersNamesNoFile(t *testing.T) {
	base := Config{Node: "a", Root: "/u", Servers: []string{"zk1:2181", "zk2:2181"}, Logger: hclog.NewNullLogger()}
	for name, servers := range map[string][]string{
		"one more": {"zk1:2181", "zk2:2181", "zk3:2181"}, "one less": {"zk2:2181"}, "another order": {"zk2:2181", "zk1:2181"},
		"ports of TLS": {"zk1:2281", "zk2:2281"}, "addresses": {"10.0.0.1:2181", "10.0.0.2:2181"},
	} {
		now := base
		now.Servers = servers
		if ClusterOf(now) != ClusterOf(base) {
			t.Errorf("%s: what lies there is not found", name)
		}
	}
	for _, other := range []Config{{Root: "/v"}, {Root: "/u", Cluster: "b"}, {Root: "/u/b"}} {
		if ClusterOf(other) == ClusterOf(base) {
			t.Errorf("%s %q has the files of another cluster", other.Root, other.Cluster)
		}
	}
}
