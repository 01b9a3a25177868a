package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"understudy/election"
	"understudy/supervisor/control"
)

// visit is what a command needs that asks a cluster something.
type visit struct {
	clusterFlags
	timeout time.Duration
	json    bool
}

func (v *visit) register(cmd *cobra.Command, prints string) {
	v.clusterFlags.register(cmd)
	cmd.Flags().DurationVar(&v.timeout, "timeout", 5*time.Second, "how long to wait for ZooKeeper")
	if prints != "" {
		cmd.Flags().BoolVar(&v.json, "json", false, "print "+prints+" as JSON")
	}
}

// within connects, and calls ask with what is left of the time.
func (v *visit) within(ctx context.Context, ask func(context.Context, *control.Cluster) error) error {
	cfg, err := v.election()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, v.timeout)
	defer cancel()
	return v.connected(ctx, cfg, func(c *control.Cluster) error { return v.judge(ask(ctx, c)) })
}

// connected calls use with a connection, which it closes. Getting it takes no longer than the timeout.
func (v *visit) connected(ctx context.Context, cfg election.Config, use func(*control.Cluster) error) error {
	if v.timeout <= 0 {
		return usage("--timeout must be more than zero")
	}
	ctx, cancel := context.WithTimeout(ctx, v.timeout)
	defer cancel()
	cluster, err := control.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer cluster.Close()
	return use(cluster)
}

// judge tells that the time ran out from other failures.
func (v *visit) judge(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w after %v: %w", errTimeout, v.timeout, err)
	}
	return err
}

// words are the flags that make another command speak of the same cluster.
func (f *clusterFlags) words() []string {
	var words []string
	if f.ZK != "" && f.ZK != os.Getenv("UNDERSTUDY_ZK") {
		words = append(words, "--zk "+f.ZK)
	}
	if f.Root != "" {
		words = append(words, "--root "+f.Root)
	}
	if f.Config != "" {
		words = append(words, "--config "+f.Config)
	}
	return words
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
