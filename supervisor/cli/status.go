package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"understudy/election"
	"understudy/supervisor/control"
)

func statusCommand() *cobra.Command {
	var v visit
	var watch bool
	cmd := &cobra.Command{
		Use:   "status [SERVICE]",
		Short: "Show who is active, who stands by, and what is wrong",
		Long: "Shows who is active and who stands by, since when and how well, and for each fault the command that mends it.\n" +
			"It reads everything from ZooKeeper, so it works on any machine that reaches the servers.",
		Example: "  understudy status --zk zk1,zk2,zk3\n" +
			"  understudy status db --config /etc/understudy/understudy.yaml --json",
		Args: atMostOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !watch {
				return v.visits(cmd.Context(), func(ctx context.Context, c *control.Cluster) error {
					return v.showStatus(ctx, c, os.Stdout, args)
				})
			}
			if v.json || terminalWidth(os.Stdout) == 0 {
				return v.printChanges(cmd.Context(), args)
			}
			return v.watchStatus(cmd.Context(), args)
		},
	}
	v.register(cmd, "the same facts")
	cmd.ValidArgsFunction = v.services
	cmd.Flags().BoolVar(&watch, "watch", false, "update the screen until Ctrl-C; without a screen, or with --json, print each change")
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
	if err := writeStatus(w, screenOf(w), s, time.Now(), v.words()); err != nil {
		return err
	}
	return v.noteExposure(w)
}

// noteExposure says once what strangers can do at the servers that a config file names.
func (v *visit) noteExposure(w io.Writer) error {
	if v.ZK != "" { // flags do not tell what keeps strangers out
		return nil
	}
	c, err := v.cluster()
	if err != nil {
		return err
	}
	if exposure := c.ZooKeeper.Exposure(); exposure != "" {
		_, err = fmt.Fprintln(w, strings.Join(note(screenOf(w).width, exposure), "\n"))
	}
	return err
}

var statusColumns = []column{
	{head: "SERVICE", shrinks: true}, {head: "NODE", shrinks: true}, {head: "ROLE"}, {head: "SINCE", right: true},
	{head: "HEALTH"}, {head: "TOKEN", right: true},
}

// writeStatus prints the table. flags make a command speak of the same cluster.
func writeStatus(w io.Writer, to screen, s control.Status, now time.Time, flags []string) error {
	if len(s.Services) == 0 {
		lines := append(wrap("No service has ever run in this cluster. Start one on two nodes or more:", to.width),
			command(to.width, withFlags(control.Command{Words: []string{"understudy run", "--service NAME"}, Wraps: "COMMAND"}, flags)...)...)
		_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
		return err
	}
	var rows []row
	for _, v := range s.Services {
		rows = append(rows, statusRows(to, v, now, flags)...)
	}
	for _, n := range s.Nodes {
		if n.Fault != "" {
			rows = append(rows, row{notes: misconfigured(to, n)})
		}
		for _, w := range n.Warnings {
			rows = append(rows, row{notes: to.paintAll(yellow, note(to.width, n.Node+" warns: "+w))})
		}
	}
	return writeTable(w, to, statusColumns, rows)
}

func statusRows(to screen, v control.Service, now time.Time, flags []string) []row {
	var rows []row
	for _, m := range v.Members {
		r := row{
			cells:   []string{"", m.Node, string(m.Role), since(m.Since, now), string(m.Health), ""},
			colours: []colour{plain, plain, roleColours[m.Role], plain, healthColours[m.Health]},
		}
		if m.Node == v.Active && v.Token != 0 {
			r.cells[5] = strconv.FormatInt(v.Token, 10)
		}
		r.notes = faults(to, v, m.Node, flags)
		if len(r.notes) == 0 && m.Why != "" && m.Why != v.Order {
			r.notes = note(to.width, m.Node+": "+m.Why)
		}
		if len(r.notes) == 0 && m.Node == v.Active && len(v.Failsafe) > 0 {
			r.notes = note(to.width, "failsafe: without ZooKeeper it goes on by the promises of "+strings.Join(v.Failsafe, ", "))
		}
		rows = append(rows, r)
	}
	if len(rows) == 0 {
		rows = append(rows, row{cells: []string{"", "nobody", "", "", "", ""}})
	}
	rows[0].cells[0] = v.Service
	return append(rows, row{notes: faults(to, v, "", flags)})
}

var roleColours = map[election.Role]colour{
	election.RoleActive: green, election.RoleClaiming: yellow, election.RoleFencing: yellow, election.RoleStopping: yellow,
	election.RolePaused: yellow, election.RoleFailed: red, election.RoleUnknown: red,
}

var healthColours = map[election.Health]colour{
	election.HealthStarting: yellow, election.HealthFailing: red, election.HealthUnfit: yellow, election.HealthFailed: red, election.HealthUnknown: red,
}

// faults tells what is wrong with a node's part, or with the service as a whole, and what mends it.
func faults(to screen, v control.Service, node string, flags []string) []string {
	var lines []string
	for _, f := range v.Faults {
		if f.Node != node {
			continue
		}
		colour := yellow
		if f.Level == control.Grave {
			colour = red
		}
		lines = append(lines, to.paintAll(colour, note(to.width, strings.TrimSpace(f.What+" "+f.Hint)))...)
		if len(f.Do.Words) > 0 {
			lines = append(lines, command(to.width, withFlags(f.Do, flags)...)...)
		}
	}
	return lines
}

// withFlags gives the words of a command with the flags that say which cluster.
func withFlags(do control.Command, flags []string) []string {
	i := slices.IndexFunc(flags, func(f string) bool { return strings.HasPrefix(f, "--config ") })
	switch {
	case do.Here:
		return do.Words
	case do.Wraps != "" && i >= 0:
		return []string{do.Words[0], flags[i]} // the same file, on the other node
	case do.Wraps != "":
		flags = append(slices.Clip(flags), "-- "+do.Wraps)
	}
	return slices.Concat(do.Words, flags)
}

// misconfigured tells why a supervisor does not do what its config says now.
func misconfigured(to screen, n control.Node) []string {
	text := n.Node + " keeps its former config: " + n.Fault + "."
	lines := to.paintAll(red, note(to.width, text+" To see all that is wrong, on "+n.Node+":"))
	if n.Restart {
		return to.paintAll(yellow, note(to.width, text))
	}
	return append(lines, command(to.width, "understudy check")...)
}
