package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"understudy/election"
	"understudy/supervisor/control"
)

func historyCommand() *cobra.Command {
	var v visit
	var number int
	cmd := &cobra.Command{
		Use:   "history [SERVICE]",
		Short: "Show the last activations, and why each ended",
		Long: "Shows the last activations, the newest first: when and where, how long each lasted, how long nothing ran before it\n" +
			"(GAP), why it ended, and by which proof of the former child's death it started. \"-\": unknown, or nobody had to\n" +
			"be fenced. Times are those of the nodes' own clocks; --json has the tokens too.",
		Example: "  understudy history db --zk zk1,zk2,zk3\n  understudy history --number 100 --json",
		Args:    atMostOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			if number < 0 {
				return usage("--number must not be negative")
			}
			return v.visits(cmd.Context(), func(ctx context.Context, c *control.Cluster) error {
				entries, err := c.History(ctx, args...)
				if err != nil {
					return err
				}
				if number > 0 && len(entries) > number {
					entries = entries[:number]
				}
				if v.json {
					return writeJSON(os.Stdout, map[string]any{"activations": entries})
				}
				return writeHistory(os.Stdout, screenOf(os.Stdout), entries, time.Now(), len(args) == 0)
			})
		},
	}
	v.register(cmd, "the same facts")
	cmd.ValidArgsFunction = v.services
	cmd.Flags().IntVarP(&number, "number", "n", 20, "how many activations to show; 0: all")
	complete(cmd, "number", none)
	return cmd
}

// writeHistory prints the table.
func writeHistory(w io.Writer, to screen, entries []control.Activation, now time.Time, services bool) error {
	if len(entries) == 0 {
		_, err := fmt.Fprintln(w, "Nothing has been active yet.")
		return err
	}
	columns := []column{
		{head: "WHEN"}, {head: "SERVICE", shrinks: true}, {head: "NODE", shrinks: true}, {head: "LASTED", right: true},
		{head: "GAP", right: true}, {head: "ENDED", wraps: true}, {head: "FORMER FENCED", wraps: true},
	}
	rows := make([]row, 0, len(entries))
	for _, a := range entries {
		r := row{cells: []string{
			start(a.Start, now), a.Service, a.Node, lasted(a.RanMs, ago), lasted(a.GapMs, brief), ended(a), fenced(a),
		}}
		if a.Active {
			r.colours = []colour{plain, plain, plain, plain, plain, green}
		}
		rows = append(rows, r)
	}
	if !services {
		columns = slices.Delete(columns, 1, 2)
		for i := range rows {
			rows[i].cells = slices.Delete(rows[i].cells, 1, 2)
			if len(rows[i].colours) > 0 {
				rows[i].colours = rows[i].colours[1:]
			}
		}
	}
	return writeTable(w, to, columns, rows)
}

// start is a point in time, with the date unless it is today's.
func start(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	switch {
	case t.Year() != now.Year():
		return t.Format("2006-01-02")
	case t.YearDay() != now.YearDay():
		return t.Format("01-02 15:04")
	}
	return t.Format("15:04:05")
}

func lasted(ms *int64, tell func(time.Duration) string) string {
	if ms == nil {
		return "-"
	}
	return tell(time.Duration(*ms) * time.Millisecond)
}

// ended tells why an activation ended. How the next one knew stands in its own row.
func ended(a control.Activation) string {
	if a.Active {
		return "active"
	}
	switch end := a.Reason.Word(); end {
	case election.Lost:
		return "lost with its supervisor or host"
	case "":
		return "no word of its end"
	default:
		return string(end)
	}
}

// fenced tells how an activation could begin.
func fenced(a control.Activation) string {
	if a.Fenced == election.NoBreadcrumb {
		return "-"
	}
	return cmp.Or(string(a.Fenced), "no word")
}
