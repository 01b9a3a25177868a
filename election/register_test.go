package election

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/supervisor/testbed/must"
)

// notes is what was logged so far.
type notes struct {
	mu   sync.Mutex // guards text
	text strings.Builder
}

func (n *notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.Write(p)
}

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.String()
}

// Two supervisors started with one name, as on one machine without --node, look like one that waits for its own past.
func TestASupervisorThatIsThereForGoodIsNotCalledAPreviousSession(t *testing.T) {
	inWorld(t, func(w *world) {
		leave := make(chan struct{})
		first := w.open("a", func(context.Context, *Session) error {
			<-leave
			return nil
		})
		time.Sleep(time.Second)
		var said notes
		cfg := w.config("a")
		cfg.Logger = hclog.New(&hclog.LoggerOptions{Output: &said})
		second := make(chan error, 1)
		go func() {
			e := New(cfg)
			second <- e.Open(w.Context(), func(context.Context, *Session) error { return nil })
			e.Wait()
		}()
		time.Sleep(testTimeout / 2)
		early := said.String()
		time.Sleep(2 * testTimeout)
		late := said.String()
		close(leave)
		must.Report(w, first())
		must.Report(w, <-second)
		const warning = "another supervisor has the name of this node"
		if !strings.Contains(early, "previous session of this node") || strings.Contains(early, warning) {
			w.Errorf("at first it says\n%s", early)
		}
		if strings.Count(late, warning) != 1 {
			w.Errorf("then it says\n%s", late)
		}
	})
}
