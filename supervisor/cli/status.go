package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"understudy/supervisor/control"
)

func statusCommand() *cobra.Command {
	var v visit
	var watch bool
	cmd := &cobra.Command{
		Use:   "status [SERVICE]",
		Short: "Show who is active, who stands by, and what is wrong",
		Long: "Shows who is active and who stands by, since when and how well, and for what is wrong the command that mends it.\n" +
			"Everything is read from ZooKeeper: any machine that reaches it can ask.",
		Example: "  understudy status --zk zk1,zk2,zk3\n" +
			"  understudy status db --config /etc/understudy/understudy.yaml --json",
		Args: atMostOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !watch {
				return v.within(cmd.Context(), func(ctx context.Context, c *control.Cluster) error {
					return v.showStatus(ctx, c, os.Stdout, args)
				})
			}
			if v.json || terminalWidth(os.Stdout) == 0 {
				return usage("--watch is for a terminal, and not for --json")
			}
			return v.watchStatus(cmd.Context(), args)
		},
	}
	v.register(cmd, "the same facts")
	cmd.Flags().BoolVar(&watch, "watch", false, "keep the screen current until Ctrl-C")
	return cmd
}

func (v *visit) showStatus(ctx context.Context, c *control.Cluster, w io.Writer, services []string) error {
	s, err := c.Status(ctx, services...)
	if err != nil {
		return err
	}
	if v.json {
		return writeJSON(w, s)
	}
	return writeStatus(w, widthOf(w), s, time.Now(), v.words())
}

// watchStatus draws the status over itself every second. Trouble is shown in its place, until it is over.
func (v *visit) watchStatus(ctx context.Context, services []string) error {
	cfg, err := v.election()
	if err != nil {
		return err
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	fmt.Print("\x1b[2J")
	for ctx.Err() == nil {
		err := v.connected(ctx, cfg, func(c *control.Cluster) error {
			for {
				if err := v.drawStatus(ctx, c, services); err != nil {
					return err
				}
				select {
				case <-tick.C:
				case <-ctx.Done():
					return nil
				}
			}
		})
		if err == nil || ctx.Err() != nil {
			break
		}
		draw(strings.Join(wrap("understudy: "+err.Error(), widthOf(os.Stdout)), "\n") + "\n")
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	return nil
}

func (v *visit) drawStatus(ctx context.Context, c *control.Cluster, services []string) error {
	ctx, cancel := context.WithTimeout(ctx, v.timeout)
	defer cancel()
	s, err := c.Status(ctx, services...)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := writeStatus(&b, widthOf(os.Stdout), s, time.Now(), v.words()); err != nil {
		return err
	}
	draw(b.String())
	return nil
}

// draw replaces what is on the screen without a flicker: each line is written over the former one. What the screen cannot
// hold is left out.
func draw(text string) {
	_, height := terminalSize(os.Stdout)
	lines := strings.SplitAfter(text, "\n")
	text = strings.Join(lines[:min(len(lines), max(height-1, 1))], "")
	fmt.Print("\x1b[H" + strings.ReplaceAll(text, "\n", "\x1b[K\n") + "\x1b[J")
}

var statusColumns = []column{
	{head: "SERVICE", shrinks: true}, {head: "NODE", shrinks: true}, {head: "ROLE"}, {head: "SINCE", right: true},
	{head: "HEALTH"}, {head: "TOKEN", right: true},
}

// writeStatus prints the table. flags make a command speak of the same cluster.
func writeStatus(w io.Writer, width int, s control.Status, now time.Time, flags []string) error {
	if len(s.Services) == 0 {
		_, err := fmt.Fprintln(w, "No service has ever run here. Start one on two nodes or more: understudy run --service NAME -- COMMAND")
		return err
	}
	var rows []row
	for _, v := range s.Services {
		rows = append(rows, statusRows(width, v, now, flags)...)
	}
	return writeTable(w, width, statusColumns, rows)
}

func statusRows(width int, v control.Service, now time.Time, flags []string) []row {
	var rows []row
	for _, m := range v.Members {
		r := row{cells: []string{"", m.Node, m.Role, since(m.Since, now), m.Health, ""}}
		if m.Node == v.Active && v.Token != 0 {
			r.cells[5] = strconv.FormatInt(v.Token, 10)
		}
		if m.Why != "" {
			r.notes = note(width, m.Node+": "+m.Why)
		}
		rows = append(rows, r)
	}
	if len(rows) == 0 {
		rows = append(rows, row{cells: []string{"", "nobody", "", "", "", ""}})
	}
	rows[0].cells[0] = v.Service
	return append(rows, row{notes: faults(width, v, now, flags)})
}

// faults tells what keeps a service from running, and what mends it.
func faults(width int, v control.Service, now time.Time, flags []string) []string {
	f := v.Fencing
	mend := func(text string) []string {
		words := slices.Concat([]string{"understudy fence confirm", v.Service, "--node " + f.Node}, flags)
		return append(note(width, text+" If you know that its child is dead:"), command(width, words...)...)
	}
	switch {
	case f == nil && v.Lock == "" && len(v.Members) > 0:
		return note(width, "Nobody is active.")
	case f == nil:
		return nil
	case f.Node == "":
		return note(width, "The breadcrumb of the former active cannot be read.")
	case f.By != "":
		return mend(fmt.Sprintf("Fencing %s: %s holds the lock (%s) and starts nothing while the child of %s may be running.",
			f.Node, f.By, since(f.Since, now), f.Node))
	case len(v.Members) > 0:
		return mend(fmt.Sprintf("Nobody is active: the child of %s may be running, and nobody holds the lock.", f.Node))
	}
	return note(width, fmt.Sprintf("%s was active last, and its child may be running: who comes next will fence it first.", f.Node))
}
