package zktest

import (
	"testing"

	"understudy/packaging/need"
)

const classPath = "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar"

// secureParts is what zookeeper.jar needs besides for TLS, and does not name itself.
const secureParts = ":/usr/share/java/netty-codec.jar:/usr/share/java/netty-resolver.jar"

// Need skips the test where no real server can be run.
func Need(tb testing.TB) {
	tb.Helper()
	need.These(tb, "zookeeper")
}
