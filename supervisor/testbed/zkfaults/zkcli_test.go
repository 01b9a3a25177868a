package zkfaults_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"understudy/election/zkmem"
	"understudy/packaging/need"
)

const zkCli = "/usr/share/zookeeper/bin/zkCli.sh"

func TestZkCliWorks(t *testing.T) {
	need.These(t, "zookeeper")
	if _, err := os.Stat(zkCli); err != nil {
		t.Fatalf("no zkCli.sh: apt-get install zookeeper: %v", err)
	}
	addr := listen(t, zkmem.New(2*time.Second))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, zkCli, "-server", addr)
	cmd.Env = append(os.Environ(), "JVMFLAGS=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
	cmd.Stdin = strings.NewReader(`create /svc first
create -e /svc/eph x
create -s /svc/seq- y
create /svc/box
get -w /svc
set /svc second
get -s /svc
ls -R /svc
addauth digest alice:secret
create /own z auth::cdrwa
getAcl /own
setAcl /svc/box world:anyone:r
getAcl /svc/box
stat /svc
ls -w /svc
create /svc/deep d
delete /svc/deep
sync /svc
delete /own
delete /nothing
deleteall /svc
ls /
quit
`)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v", err)
	}
	rest := string(out)
	for _, want := range []string{
		"Created /svc", "Created /svc/eph", "Created /svc/seq-0000000001", "Created /svc/box", "first",
		"second", "dataVersion = 1", "numChildren = 3", "/svc/seq-0000000001", "Created /own",
		"'digest,'alice:aYXlLOpEooaV1cRAvUL1fp9Qt7E=", ": cdrwa", "'world,'anyone", ": r", "cversion = 3",
		"Created /svc/deep", "Node does not exist: /nothing", "[zookeeper]",
	} {
		_, after, ok := strings.Cut(rest, want)
		if !ok {
			t.Fatalf("%q is missing, or out of order, in\n%s", want, out)
		}
		rest = after
	}
	for _, want := range []string{ // another thread of zkCli prints these
		"type:NodeDataChanged path:/svc\n", "type:NodeChildrenChanged path:/svc\n",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
}
