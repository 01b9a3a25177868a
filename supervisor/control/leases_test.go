package control

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"understudy/election"
	"understudy/supervisor/testbed/must"
)

func TestLeasesThatDifferAreWarnedOf(t *testing.T) {
	for _, c := range []struct {
		second int64
		want   string
	}{{20000, ""}, {0, ""}, {4000, "the leases of the nodes differ: 20s on a, c; 4s on b. "}} {
		b := newBed(t)
		s := b.session()
		for node, ms := range map[string]int64{"a": 20000, "b": c.second, "c": 20000} {
			s.put(election.NodesDir(root)+"/"+node, election.Node{Node: node, LeaseMs: ms}, zk.FlagEphemeral)
		}
		said, err := b.c.Unlike(t.Context())
		if err != nil || !strings.HasPrefix(said, c.want) || (said == "") != (c.want == "") {
			t.Errorf("%d ms: %q, %v", c.second, said, err)
		}
		status, err := b.c.Status(t.Context())
		must.OK(t, err)
		for _, n := range status.Nodes {
			if told := said != "" && slices.Contains(n.Warnings, said); told != (c.want != "" && n.Node == "b") {
				t.Errorf("%d ms: %s warns of %q", c.second, n.Node, n.Warnings)
			}
		}
	}
}
