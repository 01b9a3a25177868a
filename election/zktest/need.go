package zktest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

const classPath = "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar"

// secureParts is what zookeeper.jar needs besides for TLS, and does not name itself.
const secureParts = ":/usr/share/java/netty-codec.jar:/usr/share/java/netty-resolver.jar"

// LeftOut tells whether the environment variable UNDERSTUDY_LEFT_OUT names thing: then whoever runs the tests says
// that it is missing on purpose, and what needs it is skipped instead of failing.
func LeftOut(thing string) bool {
	for word := range strings.FieldsFuncSeq(os.Getenv("UNDERSTUDY_LEFT_OUT"), func(r rune) bool { return r == ' ' || r == ',' }) {
		if word == thing {
			return true
		}
	}
	return false
}

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

// Need ends the test unless real servers can be run here: it fails, or is skipped where ZooKeeper was left out.
func Need(tb testing.TB) {
	tb.Helper()
	if LeftOut("zookeeper") {
		tb.Skip("zookeeper is left out (UNDERSTUDY_LEFT_OUT)")
	}
	if err := Installed(); err != nil {
		tb.Fatal(err)
	}
}
