package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"understudy/election"
	"understudy/supervisor/child/journal"
	"understudy/supervisor/config"
	"understudy/supervisor/control"
)

// statusFlags are those of `status`.
type statusFlags struct {
	visit
	watch, nodes, check bool
	selection
}

func statusCommand() *cobra.Command {
	var f statusFlags
	cmd := &cobra.Command{
		Use:   "status [SERVICE]",
		Short: "Show who is active, who stands by, and what is wrong",
		Long: "Shows who is active and who stands by, since when and how well, and for each problem the command that helps.\n" +
			"It reads everything from ZooKeeper, so it works on any machine that reaches the servers. Of a config file it\n" +
			"needs only the zookeeper: part.\n\n" +
			"With --check the exit code is 0 if each service is active and well, or has run once with success, " +
			"4 if one is active but unhealthy, 5 if one is active nowhere, 6 if one is paused or active on a drained node, " +
			"7 if one is well but no node could take it over. Of several, the first of 5, 4, 7, 6.",
		Example: "  understudy status --zk zk1,zk2,zk3\n" +
			"  understudy status db --config /etc/understudy/understudy.yaml --json\n" +
			"  understudy status --check db    # for scripts and monitoring",
		Args: atMostOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.check && (f.watch || f.json):
				return usage("--check goes with neither --watch nor --json")
			case !f.watch:
				return f.visits(cmd.Context(), func(ctx context.Context, c *control.Cluster) error {
					return f.show(ctx, c, os.Stdout, args)
				})
			case f.json || terminalWidth(os.Stdout) == 0:
				return f.printChanges(cmd.Context(), args)
			}
			return f.watchStatus(cmd.Context(), args)
		},
	}
	f.register(cmd, "the same facts")
	cmd.ValidArgsFunction = f.services
	flags := cmd.Flags()
	flags.BoolVar(&f.watch, "watch", false, "update the screen until Ctrl-C; without a screen, or with --json, print each change")
	flags.BoolVar(&f.nodes, "nodes", false, fmt.Sprintf("show every node of every service, also of more than %d services", manyServices))
	flags.BoolVar(&f.failed, "failed", false, "show only services that do not run as they should")
	flags.StringVar(&f.node, "node", "", "show only services in which this `node` has a part")
	flags.BoolVar(&f.check, "check", false, "print what is wrong, and tell by the exit code")
	return cmd
}

// status asks for the services, and for a node that is known.
func (f *statusFlags) status(ctx context.Context, c *control.Cluster, services []string) (control.Status, error) {
	s, err := c.Status(ctx, services...)
	if err == nil && f.node != "" {
		err = knownNode(s, f.node)
	}
	return s, err
}

// selection is what is shown of a cluster.
type selection struct {
	node   string // in whose services; empty: all
	failed bool   // only what does not run as it should
}

func (l selection) from(s control.Status) control.Status {
	other := func(node string) bool { return l.node != "" && node != l.node }
	s.Services = slices.DeleteFunc(slices.Clone(s.Services), func(v control.ServiceStatus) bool {
		verdict, _ := v.Judge()
		runs := !v.Faulty() && verdict < control.Unhealthy
		return l.failed && runs || l.node != "" && !v.Involves(l.node) && !slices.Contains(v.Gone, l.node)
	})
	s.Drained = slices.DeleteFunc(slices.Clone(s.Drained), func(d control.DrainedNode) bool { return other(d.Node) })
	s.Nodes = slices.DeleteFunc(slices.Clone(s.Nodes), func(n control.NodeStatus) bool { return other(n.Node) })
	s.Gone = slices.DeleteFunc(slices.Clone(s.Gone), func(g control.GoneNode) bool { return other(g.Node) })
	return s
}

// knownNode fails for a node that neither is connected nor has a part in a service.
func knownNode(s control.Status, node string) error {
	known := s.NodeNames()
	switch {
	case slices.Contains(known, node):
		return nil
	case slices.ContainsFunc(s.Services, func(v control.ServiceStatus) bool { return v.Service == node }):
		return fmt.Errorf("no node %q: %[1]s is a service, and `understudy status %[1]s` shows it", node)
	}
	return &control.UnknownError{Kind: "node", Name: node, Known: known}
}

func (f *statusFlags) show(ctx context.Context, c *control.Cluster, w io.Writer, services []string) error {
	s, err := f.status(ctx, c, services)
	switch {
	case err != nil:
		return err
	case f.json:
		return writeJSON(w, f.from(s))
	case f.check:
		return checkStatus(w, f.from(s), time.Now())
	}
	if err := writeStatus(w, f.paper(screenOf(w), services), s, time.Now()); err != nil {
		return err
	}
	if len(services) == 1 {
		f.lastLines(ctx, s.Services[0])
	}
	return f.noteExposure(w)
}

// lastLines shows the end of the output of a service whose program fails on this node.
func (f *statusFlags) lastLines(ctx context.Context, v control.ServiceStatus) {
	logs := logsFlags{clusterFlags: f.clusterFlags, lines: 5, quiet: true}
	logs.Config = cmp.Or(f.Config, config.DefaultFile)
	c, _, err := config.LoadPartly(logs.Config)
	for _, m := range v.Members {
		if err == nil && m.Node == c.Node && (m.Role == election.RoleFailed || m.Health == election.HealthFailing) &&
			(m.Logs || journal.Runs()) {
			fmt.Fprintf(stdout, "  The last lines of its output on %s:\n", m.Node)
			_ = logs.show(ctx, v.Service) // the command that shows more is above
		}
	}
}

// paper is what the table is written on.
func (f *statusFlags) paper(to screen, services []string) paper {
	return paper{screen: to, flags: f.words(), all: f.nodes || len(services) > 0, selection: f.selection}
}

// noteExposure says once what strangers can do at the servers that a config file names.
func (f *statusFlags) noteExposure(w io.Writer) error {
	if f.ZK != "" { // flags do not tell what keeps strangers out
		return nil
	}
	c, err := f.cluster()
	if err != nil {
		return err
	}
	if exposure := c.ZooKeeper.Exposure(); exposure != "" {
		_, err = fmt.Fprintln(w, strings.Join(note(screenOf(w).width, "Note: "+exposure+"."), "\n"))
	}
	return err
}

var statusColumns = []column{
	{head: "SERVICE", shrinks: true}, {head: "NODE", shrinks: true}, {head: "ROLE"}, {head: "SINCE", right: true},
	{head: "HEALTH"}, {head: "TOKEN", right: true},
}

// manyServices is how many are shown with a line for each node, unless more is asked for.
const manyServices = 20

var briefColumns = []column{
	{head: "SERVICE", shrinks: true}, {head: "ACTIVE", shrinks: true}, {head: "SINCE", right: true}, {head: "HEALTH"},
	{head: "STANDBYS", right: true},
}

// paper is what a status is written on, and how.
type paper struct {
	screen
	flags []string // that make a command speak of the same cluster
	all   bool     // a line for each node, whatever the number of services
	selection
}

// writeStatus prints the table.
func writeStatus(w io.Writer, to paper, s control.Status, now time.Time) error {
	all := selection{node: to.node}.from(s).Services
	s = to.from(s)
	if len(s.Services) == 0 {
		lines := slices.Concat(to.nothing(s), to.unheard(s), to.gone(s, now), to.drained(s))
		if len(all) > 0 {
			lines = append(lines, wrap(total(all), to.width)...)
		}
		_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
		return err
	}
	short := !to.all && len(s.Services) > manyServices
	if short {
		slices.SortStableFunc(s.Services, func(a, b control.ServiceStatus) int { return cmp.Compare(severity(a), severity(b)) })
	}
	columns := statusColumns
	if short {
		columns = briefColumns
	}
	var rows []row
	many := alike(s.Services)
	for _, v := range s.Services {
		if short {
			rows = append(rows, to.brief(v, now)...)
		} else {
			v.Problems = slices.DeleteFunc(slices.Clone(v.Problems),
				func(f control.Problem) bool { return f.Node == "" && many[f.What] != nil })
			rows = append(rows, statusRows(to.screen, v, now, to.flags)...)
		}
	}
	for _, what := range slices.Sorted(maps.Keys(many)) {
		if !short {
			rows = append(rows, row{notes: to.paintAll(yellow, note(to.width, firstOf(many[what])+": "+what))})
		}
	}
	for _, n := range s.Nodes {
		if n.Fault != "" {
			rows = append(rows, row{notes: misconfigured(to.screen, n)})
		}
	}
	for _, words := range warned(s.Nodes) {
		rows = append(rows, row{notes: to.paintAll(yellow, note(to.width, words))})
	}
	rows = append(rows, row{notes: to.unheard(s)}, row{notes: to.gone(s, now)}, row{notes: to.drained(s)})
	for _, words := range otherFiles(s.Services) {
		rows = append(rows, row{notes: to.paintAll(yellow, note(to.width, words))})
	}
	if len(all) > 1 {
		notes := wrap(total(all), to.width)
		if short && !to.failed && severity(s.Services[0]) < 2 {
			notes = append(wrap(total(all)+" To see only what is wrong:", to.width),
				command(to.width, withFlags(control.Remedy{Words: []string{"understudy status", "--failed"}}, to.flags)...)...)
		}
		rows = append(rows, row{notes: notes})
	}
	return writeTable(w, to.screen, columns, rows)
}

// alike are the services that have the same problem, where these are so many that it is told once, and nothing mends it for one of them.
func alike(services []control.ServiceStatus) map[string][]string {
	all := map[string][]string{}
	for _, v := range services {
		for _, f := range v.Problems {
			if f.Node == "" && f.Level == control.Warning && len(f.Do.Words) == 0 {
				all[f.What] = append(all[f.What], v.Service)
			}
		}
	}
	maps.DeleteFunc(all, func(_ string, services []string) bool { return len(services) < 3 })
	return all
}

// nothing tells why there is no service to show.
func (to paper) nothing(s control.Status) []string {
	switch {
	case to.failed:
		return []string{"No service is down or unhealthy."}
	case to.node != "":
		return []string{to.node + " has a part in no service."}
	case len(s.Nodes) > 0:
		return wrap(fmt.Sprintf("%s is connected, and its services are starting, or it has none.", s.Nodes[0].Node), to.width)
	}
	return append(wrap("Nothing of Understudy is below "+s.Where+". If that is the right place, start a service on two nodes or more:",
		to.width),
		command(to.width, withFlags(control.Remedy{Words: []string{"understudy run", "--service NAME"}, Wraps: "COMMAND"}, to.flags)...)...)
}

// brief is one line for a service, and what is gravely wrong with it.
func (to paper) brief(v control.ServiceStatus, now time.Time) []row {
	r := row{cells: []string{v.Service, cmp.Or(v.Active, "nobody"), since(v.Since, now), "", "0"}, colours: make([]colour, 5)}
	standbys := 0
	for _, m := range v.Members {
		if m.Node == v.Active {
			r.cells[3], r.colours[3] = string(m.Health), healthColours[m.Health]
		} else if v.StandsBy(m) {
			standbys++
		}
	}
	r.cells[4] = strconv.Itoa(standbys)
	if standbys == 0 {
		r.colours[4] = yellow
	}
	if v.Paused {
		r.cells[3], r.colours[3] = strings.TrimSpace(r.cells[3]+" paused"), yellow
	}
	r.notes = problemLines(to.screen, v, to.flags, func(f control.Problem) bool { return f.Level == control.Fault || v.Unfit(f) })
	return []row{r}
}

func statusRows(to screen, v control.ServiceStatus, now time.Time, flags []string) []row {
	var rows []row
	for _, m := range v.Members {
		r := row{
			cells:   []string{"", m.Node, string(m.Role), since(m.Since, now), string(m.Health), ""},
			colours: []colour{plain, plain, roleColours[m.Role], plain, healthColours[m.Health]},
		}
		if m.Node == v.Active && v.Token != 0 {
			r.cells[5] = strconv.FormatInt(v.Token, 10)
		}
		r.notes = problems(to, v, m.Node, flags)
		if d := m.Drained; d != nil { // which paper.drained gives, with the command that ends it
			r.notes = problemLines(to, v, flags,
				func(f control.Problem) bool { return f.Node == m.Node && !strings.Contains(f.What, " is "+d.Words) })
		}
		if len(r.notes) == 0 && m.Drained == nil && m.Why != "" && m.Why != v.Order && !saidOnce(v, m.Why) {
			r.notes = note(to.width, m.Node+": "+m.Why)
		}
		if len(r.notes) == 0 && m.Node == v.Active && len(v.Failsafe) > 0 {
			r.notes = note(to.width, "failsafe: without ZooKeeper it keeps running as long as "+
				"these nodes agree not to start it: "+strings.Join(v.Failsafe, ", "))
		}
		rows = append(rows, r)
	}
	if r := v.Ran; r != nil {
		rows = append(rows, row{cells: []string{"", r.Node, "done", since(r.End, now), cmp.Or(r.Exit, "ended"), ""}})
	} else if len(rows) == 0 {
		rows = append(rows, row{cells: []string{"", "nobody", "", "", "", ""}})
	}
	rows[0].cells[0] = v.Service
	return append(rows, row{notes: append(copyLines(to, v, now), problems(to, v, "", flags)...)})
}

// saidOnce reports whether a problem of the service as a whole has a node's reason already.
func saidOnce(v control.ServiceStatus, why string) bool {
	return slices.ContainsFunc(v.Problems,
		func(f control.Problem) bool { return f.Node == "" && strings.Contains(f.What, " is: "+why+".") })
}

var roleColours = map[election.Role]colour{
	election.RoleActive: green, election.RoleClaiming: yellow, election.RoleFencing: yellow, election.RoleStopping: yellow,
	election.RolePaused: yellow, election.RoleFailed: red, election.RoleUnknown: red,
}

var healthColours = map[election.Health]colour{
	election.HealthStarting: yellow, election.HealthFailing: red, election.HealthUnfit: yellow,
	election.HealthFailed: red, election.HealthUnknown: red,
}

// problems tells what is wrong with a node's part, or with the service as a whole, and what mends it.
func problems(to screen, v control.ServiceStatus, node string, flags []string) []string {
	return problemLines(to, v, flags, func(f control.Problem) bool { return f.Node == node })
}

func problemLines(to screen, v control.ServiceStatus, flags []string, wanted func(control.Problem) bool) []string {
	var lines []string
	for _, f := range v.Problems {
		if !wanted(f) {
			continue
		}
		colour := yellow
		if f.Level == control.Fault {
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
func withFlags(do control.Remedy, flags []string) []string {
	i := slices.IndexFunc(flags, func(f string) bool { return strings.HasPrefix(f, "--config ") })
	switch {
	case do.Here && i >= 0 && do.Words[0] == "understudy logs": // the same file is there
		return slices.Concat(do.Words, flags[i:i+1])
	case do.Here:
		return do.Words
	case do.Wraps != "" && i >= 0:
		return []string{do.Words[0], flags[i]} // the same file, on the other node
	case do.Wraps != "":
		flags = append(slices.Clip(flags), "-- "+do.Wraps)
	}
	return slices.Concat(do.Words, flags)
}
