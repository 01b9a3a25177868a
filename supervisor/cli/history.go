package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"understudy/supervisor/control"
)

func historyCommand() *cobra.Command {
	var v visit
	var number int
	cmd := &cobra.Command{
		Use:   "history [SERVICE]",
		Short: "Show the last activations, and why each ended",
		Long: "Shows the last activations, the newest first: when and where, for how long, how long nothing ran before it, why it\n" +
			"ended, and how the next one knew that the former child was dead. Times are those of the nodes' own clocks.",
		Example: "  understudy history db --zk zk1,zk2,zk3\n  understudy history --number 100 --json",
		Args:    atMostOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			if number < 0 {
				return usage("--number must not be negative")
			}
			return v.within(cmd.Context(), func(ctx context.Context, c *control.Cluster) error {
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
				return writeHistory(os.Stdout, widthOf(os.Stdout), entries, time.Now(), len(args) == 0)
			})
		},
	}
	v.register(cmd, "the same facts")
	cmd.Flags().IntVarP(&number, "number", "n", 20, "how many; 0 for all that are kept")
	return cmd
}

// writeHistory prints the table.
func writeHistory(w io.Writer, width int, entries []control.Activation, now time.Time, services bool) error {
	if len(entries) == 0 {
		_, err := fmt.Fprintln(w, "Nothing has been active yet.")
		return err
	}
	columns := []column{
		{head: "START"}, {head: "SERVICE", shrinks: true}, {head: "NODE", shrinks: true}, {head: "TOKEN", right: true},
		{head: "RAN", right: true}, {head: "GAP", right: true}, {head: "ENDED; FORMER ONE KNOWN DEAD BY", shrinks: true},
	}
	rows := make([]row, 0, len(entries))
	for _, a := range entries {
		rows = append(rows, row{cells: []string{
			start(a.Start, now), a.Service, a.Node, strconv.FormatInt(a.Token, 10), lasted(a.RanMs, ago), lasted(a.GapMs, brief), story(a),
		}})
	}
	if !services {
		columns = slices.Delete(columns, 1, 2)
		for i := range rows {
			rows[i].cells = slices.Delete(rows[i].cells, 1, 2)
		}
	}
	return writeTable(w, width, columns, rows)
}

// start is a point in time, with the date unless it is today's.
func start(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04:05")
	}
	return t.Format("2006-01-02 15:04")
}

func lasted(ms *int64, tell func(time.Duration) string) string {
	if ms == nil {
		return "-"
	}
	return tell(time.Duration(*ms) * time.Millisecond)
}

// story tells how an activation ended, and how it could begin.
func story(a control.Activation) string {
	end := a.Reason
	switch {
	case a.Active:
		end = "active"
	case end == "":
		end = "no word of its end"
	}
	if a.Fenced != "" {
		end += "; " + a.Fenced
	}
	return end
}
