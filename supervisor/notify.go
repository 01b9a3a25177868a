package supervisor

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/child"
	"understudy/supervisor/control"
	"understudy/supervisor/wait"
)

// notifier tells people what happens to the services of the cluster, as the config says.
func (s *supervisor) notifier() *control.Notifier {
	cluster := election.Config{
		Servers: s.cfg.Servers, Root: s.cfg.Root, Lease: max(s.cfg.Lease, time.Second), Auth: s.cfg.Auth, TLS: s.cfg.TLS, Dial: s.cfg.Dial,
		Logger: hclog.NewNullLogger(),
	}
	var reach wait.Reach
	return &control.Notifier{
		Cluster: control.NewSharedCluster(cluster), Root: s.cfg.Root, Node: s.cfg.Node, Log: s.log.Named("notify"),
		Lacks: func(ctx context.Context) error {
			_, err := wait.Reached(ctx, &reach, func() (struct{}, error) { return struct{}{}, s.cfg.Notify.Lacks() }, nil)
			if ctx.Err() != nil {
				return nil
			}
			return err
		},
		Untold: func(why error) {
			untold := ""
			if why != nil {
				untold = why.Error()
			}
			if s.notes.change(func(f *facts) { f.untold = untold }).untold != untold {
				wait.Poke(s.wake)
			}
		},
		Send: func(ctx context.Context, n control.Notice) error {
			data, err := json.Marshal(n)
			if err != nil {
				return err
			}
			limit := s.cfg.Notify.Timeout
			if s.cfg.Notify.HTTP != "" {
				ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took longer than %v (notify.timeout)", limit))
				defer cancel()
				if err := post(ctx, s.cfg.Notify.HTTP, data); err != nil {
					return cmp.Or(context.Cause(ctx), err)
				}
				return nil
			}
			select {
			case <-s.guarded:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			// No service has this name. What others wrote is in the environment, and no word of the command.
			spec := child.Spec{Argv: s.cfg.Notify.Exec, Env: []string{"UNDERSTUDY_TEXT=" + n.Text, "UNDERSTUDY_NOTICE=" + string(data)}}
			return s.commands.Run(ctx, ".notify", spec, limit)
		},
	}
}

func post(ctx context.Context, url string, data []byte) error {
	ask, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(data))
	if err != nil {
		return err
	}
	ask.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(ask)
	if err != nil {
		return err
	}
	_ = answer.Body.Close()
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return fmt.Errorf("%s answered %s", url, answer.Status)
	}
	return nil
}
