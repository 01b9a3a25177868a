package zktest

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"understudy/packaging/need"
)

// jars is where Debian's packages put them. A folder in ZOOKEEPER_JARS brings those of another ZooKeeper, which run with the rest of
// Debian's: packaging/test.sh fetches 3.9.
const jars = "/usr/share/java/"

// secureParts is what zookeeper.jar needs besides for TLS, and does not name itself.
const secureParts = ":" + jars + "netty-codec.jar:" + jars + "netty-resolver.jar"

func source() string { return cmp.Or(os.Getenv("ZOOKEEPER_JARS"), jars) }

// Version is the ZooKeeper that runs: a jar beside zookeeper.jar has it in its name.
func Version() string {
	found, _ := filepath.Glob(filepath.Join(source(), "zookeeper-[0-9]*.jar"))
	return strings.TrimSuffix(strings.TrimPrefix(filepath.Base(strings.Join(found, " ")), "zookeeper-"), ".jar")
}

func classPath() string {
	from := source()
	// zookeeper.jar names Debian's jute by its path, hence the right one comes before.
	return from + "/zookeeper-jute.jar:" + from + "/zookeeper.jar:" + jars + "slf4j-simple.jar" + secureParts
}

// Need skips the test where no real server can be run.
func Need(tb testing.TB) {
	tb.Helper()
	need.These(tb, "zookeeper")
}
