package zktest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"understudy/packaging/need"
)

const classPath = "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar"

// secureParts is what zookeeper.jar needs besides for TLS, and does not name itself.
const secureParts = ":/usr/share/java/netty-codec.jar:/usr/share/java/netty-resolver.jar"

// Installed is nil when servers can be run here, and otherwise says what to install.
func Installed() error {
	const hint = "apt-get install zookeeper"
	if _, err := exec.LookPath("java"); err != nil {
		return fmt.Errorf("no java to run ZooKeeper with: %s", hint)
	}
	for jar := range strings.SplitSeq(classPath, ":") {
		if _, err := os.Stat(jar); errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("no %s: %s", jar, hint)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// Need ends the test unless real servers are asked for, and can be run here.
func Need(tb testing.TB) {
	tb.Helper()
	need.These(tb, "zookeeper")
	if err := Installed(); err != nil {
		tb.Fatal(err)
	}
}
