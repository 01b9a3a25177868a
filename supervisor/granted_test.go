package supervisor

import (
	"bytes"
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/election/zkmem"
	"understudy/supervisor/child/box"
	"understudy/supervisor/config"
	"understudy/supervisor/service"
)

// idle is a guard for sessions without services.
type idle struct{ treeless }

func (idle) Kind() string                { return box.KindCgroup }
func (idle) Over(uint64) <-chan struct{} { return nil }

// A session timeout that the servers do not grant is a warning, once, with what follows from it.
func TestAnotherSessionTimeoutThanAskedForIsAWarning(t *testing.T) {
	for name, c := range map[string]struct {
		tick, asked time.Duration
		want        string
	}{
		"more": {tick: 2 * time.Second, asked: 2 * time.Second, want: `asked=2s granted=4s why="the servers' minSessionTimeout, by default 2 x tickTime" ` +
			`takeover="a lost host is taken over after up to 3.3s" outage="programs stop after 2.2s without ZooKeeper"`},
		"less":     {tick: 500 * time.Millisecond, asked: time.Minute, want: `asked=1m0s granted=10s why="the servers' maxSessionTimeout, by default 20 x tickTime" takeover="a lost host is taken over after up to 7.4s"`},
		"as asked": {tick: 500 * time.Millisecond, asked: 4 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			server := zkmem.New(zkmem.Config{TickTime: c.tick})
			defer server.Close()
			var log bytes.Buffer
			s, began := small(Config{Machine: early{}, Timeout: c.asked, Services: []service.Conf{
				{Name: "a", Service: config.Service{GraceDelay: 500 * time.Millisecond}}, {Name: "b"},
			}}), time.Now()
			s.log = hclog.New(&hclog.LoggerOptions{Output: &log, DisableTime: true, Level: hclog.Warn})
			s.guard = idle{}
			close(s.guarded)
			e := election.New(election.Config{
				Servers: []string{"zk:2181"}, Root: "/understudy", Timeout: c.asked, Node: s.self, Logger: hclog.NewNullLogger(),
				Now: func() time.Duration { return time.Since(began) + time.Hour },
				Dial: func(ctx context.Context, _ string) (net.Conn, error) {
					ours, theirs := net.Pipe()
					go server.ServeConn(theirs)
					return ours, ctx.Err()
				},
			})
			for epoch := range uint64(2) {
				err := e.Open(t.Context(), func(ctx context.Context, sess *election.Session) error {
					ctx, enough := context.WithTimeout(ctx, time.Second)
					defer enough()
					return s.serve(ctx, sess, epoch)
				})
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			e.Wait()
			lines := strings.Count(log.String(), "grant another session timeout")
			if c.want == "" && lines != 0 || c.want != "" && (lines != 1 || !strings.Contains(log.String(), c.want)) {
				t.Errorf("%s:\n%s", name, &log)
			}
		})
	}
}
