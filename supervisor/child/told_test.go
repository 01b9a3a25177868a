package child

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/supervisor/child/box"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/testbed/must"
)

// The log names the programs that guardians have killed at the end of a lease, while their supervisor lives.
func TestAGuardiansKillIsAWarningThatNamesTheProgram(t *testing.T) {
	said, log := io.Pipe()
	g, stop := running(t, GuardConfig{Container: probed(t, box.KindWalk), Name: "test", Logger: hclog.New(&hclog.LoggerOptions{Output: log})})
	lines := make(chan string, 64)
	go func() {
		for all := bufio.NewScanner(said); all.Scan(); {
			lines <- all.Text()
		}
	}()
	must.OK(t, errors.Join(g.Begin(1, nil), g.Extend(1, wire.Now()+time.Second)))
	tree, err := g.NewTree(t.Context(), 1, "web", nil)
	must.OK(t, err)
	started(t, tree, "sleep 1000")
	for limit := time.After(patience); ; {
		select {
		case line := <-lines:
			if !strings.Contains(line, "[WARN]") || !strings.Contains(line, "a guardian ended the lease and killed the programs") {
				continue
			}
			if !strings.Contains(line, `reason="the lease ran out" killed=web`) {
				t.Error(line)
			}
			must.Report(t, stop())
			_ = log.Close()
			return
		case <-limit:
			t.Fatal("nothing is said of it")
		}
	}
}
