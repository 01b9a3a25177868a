package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"understudy/election"
	"understudy/supervisor/control"
)

func historyCommand() *cobra.Command {
	var v visit
	var number int
	var since time.Duration
	var unplanned bool
	cmd := &cobra.Command{
		Use:   "history [SERVICE]",
		Short: "Show the last activations, and why each ended",
		Long: "Shows the last activations, the newest first: when and where, how long the program was ready, how long the service was\n" +
			"down before (GAP), why it ended, and how the previous node was proved dead (PROOF). A gap lasts from the death of the\n" +
			"previous program until this one was ready; STARTUP is its last part, from the start of the program. A node that was\n" +
			"lost wrote no end. Its program died between its last heartbeat and the loss of its lock: \"~2-5s\". \">6s\": at least\n" +
			"that long, \"<6s\": at most. \"-\" means unknown or not needed. Times are those of the nodes' own clocks. " +
			"--json has the tokens, too.",
		Example: "  understudy history db --zk zk1,zk2,zk3\n  understudy history --since 24h --unplanned --json",
		Args:    atMostOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			if number < 0 || since < 0 {
				return usage("--number and --since must not be negative")
			}
			return v.visits(cmd.Context(), func(ctx context.Context, c *control.Cluster) error {
				entries, err := c.History(ctx, args...)
				if err != nil {
					return err
				}
				all := len(entries)
				entries = slices.DeleteFunc(entries, func(a control.HistoryEntry) bool {
					return unplanned && (a.Active || a.Reason.Planned()) || since > 0 && endedBefore(a, time.Now().Add(-since))
				})
				if number > 0 && len(entries) > number {
					entries = entries[:number]
				}
				if v.json {
					return writeJSON(os.Stdout, map[string]any{"activations": entries})
				}
				if len(entries) == 0 {
					fmt.Fprintln(stdout, unmatched(all, c.Where()))
					return nil
				}
				return writeHistory(os.Stdout, screenOf(os.Stdout), entries, time.Now(), len(args) == 0)
			})
		},
	}
	v.register(cmd, "the same facts")
	cmd.ValidArgsFunction = v.services
	cmd.Flags().IntVarP(&number, "number", "n", 20, "how many activations to show; 0: all")
	cmd.Flags().DurationVar(&since, "since", 0, "leave out what ended longer ago, such as 24h; 0: nothing")
	cmd.Flags().BoolVar(&unplanned, "unplanned", false, "only activations that ended without an operator's order")
	return cmd
}

// endedBefore reports whether an activation is known to have ended before a time.
func endedBefore(a control.HistoryEntry, at time.Time) bool {
	ended := cmp.Or(a.End, a.EndMax)
	return !a.Active && ended != nil && ended.Before(at)
}

// unmatched says that no activations are kept, or others than those that were asked for.
func unmatched(kept int, where string) string {
	switch kept {
	case 0:
		return "Nothing has been active yet below " + where + "."
	case 1:
		return "The last activation does not match."
	}
	return fmt.Sprintf("None of the last %d activations matches.", kept)
}

// writeHistory prints the table.
func writeHistory(w io.Writer, to screen, entries []control.HistoryEntry, now time.Time, services bool) error {
	columns := []column{
		{head: "WHEN"}, {head: "SERVICE", shrinks: true}, {head: "NODE", shrinks: true}, {head: "LASTED", right: true},
		{head: "GAP", right: true}, {head: "STARTUP", right: true}, {head: "ENDED", wraps: true}, {head: "PROOF", wraps: true},
	}
	rows := make([]row, 0, len(entries))
	for _, a := range entries {
		r := row{cells: []string{
			start(a.Start, now), a.Service, a.Node, ran(a), gap(a), lasted(a.ReadyMs, brief), ended(a), fenced(a),
		}}
		if a.Active {
			r.colours = []colour{plain, plain, plain, plain, plain, plain, green}
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

// ran tells how long the program was ready.
func ran(a control.HistoryEntry) string {
	if a.RanMs != nil {
		return lasted(a.RanMs, ago)
	}
	return bounds(a.RanMinMs, a.RanMaxMs)
}

// gap tells how long nothing ran before an activation, or how long two programs did.
func gap(a control.HistoryEntry) string {
	switch {
	case a.OverlapMs != nil:
		return "overlap " + lasted(a.OverlapMs, brief)
	case a.GapMs != nil:
		return lasted(a.GapMs, brief)
	}
	return bounds(a.GapMinMs, a.GapMaxMs)
}

// bounds tells a length that is not known exactly, in whole seconds as soon as there are two.
func bounds(least, most *int64) string {
	tell := brief
	switch {
	case least == nil && most == nil:
		return "-"
	case most == nil:
		return ">" + lasted(least, tell)
	case least == nil:
		return "<" + lasted(most, tell)
	}
	if *most >= 2000 {
		tell, most = ago, new(*most+999)
	}
	from, to := lasted(least, tell), lasted(most, tell)
	if from == to {
		return "~" + to
	}
	if unit := strings.TrimLeft(to, "0123456789."); unit == strings.TrimLeft(from, "0123456789.") {
		from = strings.TrimSuffix(from, unit)
	}
	return "~" + from + "-" + to
}

func lasted(ms *int64, tell func(time.Duration) string) string {
	if ms == nil {
		return "-"
	}
	return tell(time.Duration(*ms) * time.Millisecond)
}

// ended tells why an activation ended. How the next one knew stands in its own row.
func ended(a control.HistoryEntry) string {
	if a.Active {
		return "active" + down(a)
	}
	switch end := a.Reason.Word(); end {
	case election.Lost:
		return "lost with its supervisor or host" + down(a)
	case election.NotReachable: // and for whom
		return strings.ReplaceAll(string(a.Reason), "; ", " ")
	case "":
		return "no word of its end"
	default:
		return string(end) + down(a)
	}
}

// down tells of restarts in place, and how long the program was down for them.
func down(a control.HistoryEntry) string {
	if a.DownMs == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s, down %s)", count(a.Restarts, "restart"), lasted(&a.DownMs, brief))
}

// fenced tells how an activation could begin.
func fenced(a control.HistoryEntry) string {
	if a.Fenced == election.NoBreadcrumb {
		return "-"
	}
	return cmp.Or(string(a.Fenced), "no word")
}
