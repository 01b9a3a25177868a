package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"understudy/supervisor/control"
	"understudy/supervisor/printable"
	"understudy/supervisor/wait"
)

// moved is the outcome of a switchover, and errand that of a restart or reload, as JSON has them.
type moved struct {
	Service string `json:"service"`
	From    string `json:"from,omitempty"`
	To      string `json:"to"` // empty: the first node that can
	Done    bool   `json:"done"`
	TookMs  int64  `json:"took_ms,omitempty"`
	GapMs   *int64 `json:"gap_ms,omitempty"` // these two as in the history; nil: not known within partsPatience
	ReadyMs *int64 `json:"ready_ms,omitempty"`
}

type errand struct {
	Service string `json:"service"`
	Node    string `json:"node,omitempty"` // whose copy; "": the active node's
	Done    bool   `json:"done"`
}

func switchoverCommand() *cobra.Command {
	var v visit
	var to string
	var force, first, dry bool
	cmd := &cobra.Command{
		Use:   "switchover SERVICE [--to NODE]",
		Short: "Move a service to another node, as planned",
		Long: "The active node stops its program, and gives the lock back once that is proved dead. " +
			"Then the other node starts the program.\n" +
			"The command waits until it runs there. If you interrupt it, or it takes too long, it withdraws the order, " +
			"unless a node has\n" +
			"begun to follow it. In any case the service ends up running somewhere.",
		Example: "  understudy switchover db --to db-2 --zk zk1,zk2,zk3",
		Args:    exactArgs(1, "one service"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if first && to == "" {
				return usage("--first needs --to NODE: the node whose copy is to be promoted (see `%s --help`)", cmd.CommandPath())
			}
			h := control.SwitchoverRequest{Service: args[0], To: to, Force: force, First: first && !force, By: operator()}
			h.Tell = func(step string) {
				if !v.json {
					fmt.Fprintln(stdout, "  "+printable.Text(step))
				}
			}
			return v.visits(cmd.Context(), func(ctx context.Context, c *control.Cluster) error {
				if dry {
					s, err := c.Ready(ctx, h)
					if err != nil {
						return err
					}
					return v.tell(moved{Service: h.Service, From: s.Active, To: to}, "%s would move from %s to %s.\n",
						h.Service, cmp.Or(s.Active, "no node"), cmp.Or(to, "the first node that can"))
				}
				began := time.Now()
				got, err := c.Switchover(ctx, h)
				if err != nil {
					return aborted(cmd.Context(), err)
				}
				took := time.Since(began)
				entry := startOf(ctx, c, h.Service, got)
				if v.json {
					m := moved{Service: h.Service, To: got, Done: true, TookMs: took.Milliseconds()}
					if entry != nil {
						m.GapMs, m.ReadyMs = entry.GapMs, entry.ReadyMs
					}
					return writeJSON(os.Stdout, m)
				}
				fmt.Fprintf(stdout, "Done: %s is active on %s, after %s%s.\n", h.Service, printable.Text(got), brief(took), parts(entry))
				return nil
			})
		},
	}
	v.register(cmd, "the outcome")
	cmd.ValidArgsFunction = v.services
	v.patient(cmd)
	cmd.Flags().StringVar(&to, "to", "", "which `node` (default: the first that can)")
	v.completeNodes(cmd, "to")
	cmd.Flags().BoolVar(&force, "force", false, "even if the target is unhealthy, waits after a failure, or its copy lacks data")
	cmd.Flags().BoolVar(&first, "first", false,
		"promote the copy on this node though others have not reported, if none was promoted before (replicated services)")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "print what would happen, and order nothing")
	return cmd
}

// partsPatience is for the end that the previous node writes once the next one is active.
const partsPatience = 300 * time.Millisecond

// startOf is the activation on a node, once the history has how long nothing ran before it; nil: it has not.
func startOf(ctx context.Context, c *control.Cluster, service, node string) *control.HistoryEntry {
	ctx, cancel := context.WithTimeout(ctx, partsPatience)
	defer cancel()
	for {
		past, err := c.History(ctx, service)
		if err == nil && len(past) > 1 && past[0].Active && past[0].Node == node && past[0].GapMs != nil && past[0].ReadyMs != nil {
			return &past[0]
		}
		if !wait.For(ctx, partsPatience/6) {
			return nil
		}
	}
}

// parts are how long nothing ran in a switchover, and how much of that was the start, if the history has it.
func parts(a *control.HistoryEntry) string {
	if a == nil {
		return ""
	}
	hook := ""
	if a.HookMs != nil {
		hook = ", of which on_active " + lasted(a.HookMs, brief)
	}
	return fmt.Sprintf(" (gap %s, of which startup %s%s)", lasted(a.GapMs, brief), lasted(a.ReadyMs, brief), hook)
}

// aborted tells that it was the operator who did not wait.
func aborted(ctx context.Context, err error) error {
	if ctx.Err() != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("interrupted; the order is withdrawn unless a node has begun to follow it: see `understudy status` (%w)", err)
	}
	return err
}
