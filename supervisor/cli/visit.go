package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"understudy/election"
	"understudy/supervisor/config"
	"understudy/supervisor/control"
	"understudy/supervisor/printable"
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

// patient is for a command whose outcome takes a while.
func (v *visit) patient(cmd *cobra.Command) {
	f := cmd.Flags().Lookup("timeout")
	f.DefValue, f.Usage, v.timeout = "1m0s", "how long to wait until it is done", time.Minute
}

// visits connects, and calls ask with what is left of the time.
func (v *visit) visits(ctx context.Context, ask func(context.Context, *control.Cluster) error) error {
	cfg, err := v.election()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, v.timeout)
	defer cancel()
	return v.connected(ctx, cfg, func(c *control.Cluster) error { return v.explain(otherKind(ctx, c, ask(ctx, c))) })
}

// otherKind adds to an error that there is no such node that there is such a service, or the reverse.
func otherKind(ctx context.Context, c *control.Cluster, err error) error {
	unknown, ok := errors.AsType[*control.UnknownError](err)
	if !ok {
		return err
	}
	s, _ := c.Status(ctx) // an empty one adds nothing
	_, port := printable.SplitPort(unknown.Name)
	switch name := unknown.Name; {
	case unknown.Kind == "service" && port != "":
		return fmt.Errorf("%w; if %s is a server, write it after --zk: commas separate servers", err, name)
	case s.Where != "" && len(s.Services)+len(s.Nodes) == 0:
		return fmt.Errorf("%w; nothing of Understudy is below %s (is --root right?)", err, s.Where)
	case unknown.Kind == "node" && slices.ContainsFunc(s.Services, func(v control.ServiceStatus) bool { return v.Service == name }):
		return fmt.Errorf("%w; %s is a service: `understudy stop %[2]s` stops it, and `understudy switchover %[2]s` moves it", err, name)
	case unknown.Kind == "service" && slices.Contains(s.NodeNames(), name):
		return fmt.Errorf("%w; %s is a node: `understudy status --node %[2]s` shows its services, and `understudy drain %[2]s` moves them",
			err, name)
	}
	return err
}

var errInterrupted = errors.New("interrupted")

// reachable is how long a server is waited for, also by those who wait longer for what they ask.
const reachable = 5 * time.Second

// connected calls use with a connection, which it closes. Getting it takes no longer than the timeout.
func (v *visit) connected(ctx context.Context, cfg election.Config, use func(*control.Cluster) error) error {
	if v.timeout <= 0 {
		return usage("--timeout must be more than zero")
	}
	limit := min(v.timeout, reachable)
	opening, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cluster, err := control.Open(opening, cfg)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return errInterrupted
	case err != nil && limit == v.timeout && opening.Err() != nil:
		return fmt.Errorf("%w after %v: %w (is ZooKeeper up, and is %s right?)", errTimeout, limit, err, v.source())
	case err != nil:
		return fmt.Errorf("%w (is ZooKeeper up, and is %s right? waited for %v)", err, v.source(), limit)
	}
	defer cluster.Close()
	return use(cluster)
}

// explain tells that the time ran out from other failures, and what may have been meant by an unknown name. A command that the error
// advises speaks of the same cluster.
func (v *visit) explain(err error) error {
	if err = v.explained(err); err == nil || v.typed(err.Error()) == err.Error() {
		return err
	}
	return located{err, v.typed(err.Error())}
}

// located is an error whose commands have the flags that this one was given.
type located struct {
	error
	text string
}

func (l located) Error() string { return l.text }

func (l located) Unwrap() error { return l.error }

func (v *visit) explained(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		text := strings.TrimSuffix(err.Error(), ": "+context.DeadlineExceeded.Error()) // which says it once more
		return fmt.Errorf("%w after %v: %s", errTimeout, v.timeout, text)
	}
	return didYouMean(err)
}

// didYouMean adds to an error that a name is unknown which one may have been meant.
func didYouMean(err error) error {
	if unknown, ok := errors.AsType[*control.UnknownError](err); ok {
		if hint := config.DidYouMean(unknown.Name, unknown.Known); hint != "" {
			return fmt.Errorf("%w%s", err, hint)
		}
	}
	return err
}

// tell prints the outcome of a command, as JSON or in words.
func (v *visit) tell(outcome any, words string, args ...any) error {
	if v.json {
		return writeJSON(os.Stdout, outcome)
	}
	fmt.Fprint(stdout, printable.Text(v.typed(fmt.Sprintf(words, args...))))
	return nil
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(printable.JSONLines{To: w})
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
