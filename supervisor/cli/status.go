package cli

import (
	"cmp"
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
	"understudy/supervisor/printable"
)

// statusFlags are those of `status`.
type statusFlags struct {
	visit
	watch, nodes, failed, check bool
	node                        string
}

func statusCommand() *cobra.Command {
	var f statusFlags
	cmd := &cobra.Command{
		Use:   "status [SERVICE]",
		Short: "Show who is active, who stands by, and what is wrong",
		Long: "Shows who is active and who stands by, since when and how well, and for each problem the command that helps.\n" +
			"It reads everything from ZooKeeper, so it works on any machine that reaches the servers. Of a config file it\n" +
			"needs only the zookeeper: part.\n\n" +
			"With --check the exit code is 0 if each service is active and well, 4 if one is active but unhealthy, 5 if one\n" +
			"is active nowhere, 6 if one is paused or active on a drained node.",
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
	complete(cmd, "node", none)
	return cmd
}

// status asks for what the flags select.
func (f *statusFlags) status(ctx context.Context, c *control.Cluster, services []string) (control.Status, error) {
	s, err := c.Status(ctx, services...)
	if err != nil {
		return s, err
	}
	if f.node != "" {
		if err := knownNode(s, f.node); err != nil {
			return s, err
		}
	}
	s.Services = slices.DeleteFunc(s.Services, func(v control.ServiceStatus) bool {
		return f.failed && !faulty(v) || f.node != "" && !v.Involves(f.node)
	})
	s.Drained = slices.DeleteFunc(s.Drained, func(d control.DrainedNode) bool { return f.node != "" && d.Node != f.node })
	s.Nodes = slices.DeleteFunc(s.Nodes, func(n control.NodeStatus) bool { return f.node != "" && n.Node != f.node })
	return s, nil
}

// knownNode fails for a node that neither is connected nor has a part in a service.
func knownNode(s control.Status, node string) error {
	known := s.NodeNames()
	if slices.Contains(known, node) {
		return nil
	}
	return &control.UnknownError{Kind: "node", Name: node, Known: known}
}

func faulty(v control.ServiceStatus) bool {
	return slices.ContainsFunc(v.Problems, func(f control.Problem) bool { return f.Level == control.Fault })
}

func (f *statusFlags) show(ctx context.Context, c *control.Cluster, w io.Writer, services []string) error {
	s, err := f.status(ctx, c, services)
	switch {
	case err != nil:
		return err
	case f.json:
		return writeJSON(w, s)
	case f.check:
		return checkStatus(w, s)
	}
	if err := writeStatus(w, f.paper(screenOf(w), services), s, time.Now()); err != nil {
		return err
	}
	return f.noteExposure(w)
}

// paper is what the table is written on.
func (f *statusFlags) paper(to screen, services []string) paper {
	return paper{screen: to, flags: f.words(), all: f.nodes || len(services) > 0, filtered: f.failed || f.node != ""}
}

// Exit codes of `status --check`, the worst last.
const (
	exitPaused    = 6
	exitUnhealthy = 4
	exitDown      = 5
)

// checkStatus prints what is wrong, and returns the exit code of the worst service.
func checkStatus(w io.Writer, s control.Status) error {
	rank := map[int]int{0: 0, exitPaused: 1, exitUnhealthy: 2, exitDown: 3}
	worst := 0
	if len(s.Services) == 0 {
		worst = exitDown
	}
	var text strings.Builder
	for _, v := range s.Services {
		code, words := judged(v)
		if rank[code] > rank[worst] {
			worst = code
		}
		if code != 0 || len(s.Services) == 1 {
			fmt.Fprintln(&text, printable.Text(v.Service+": "+words))
		}
	}
	if len(s.Services) != 1 {
		fmt.Fprintln(&text, total(s.Services))
	}
	if _, err := io.WriteString(w, text.String()); err != nil || worst == 0 {
		return err
	}
	return exitStatus(worst)
}

// judged is how a service is, as an exit code and in words.
func judged(v control.ServiceStatus) (code int, words string) {
	words = fmt.Sprintf("active on %s, ok", v.Active)
	for _, m := range v.Members {
		if m.Node == v.Active && m.Health != election.HealthOK {
			code, words = exitUnhealthy, fmt.Sprintf("active on %s, %s", v.Active, m.Health)
		}
	}
	switch {
	case v.Active == "":
		code, words = exitDown, "no node is active"
	case code == 0 && v.Paused:
		code, words = exitPaused, fmt.Sprintf("active on %s, paused", v.Active)
	}
	if code == 0 && faulty(v) {
		code, words = exitUnhealthy, "active on "+v.Active
	}
	if d := v.DrainedActive(); code == 0 && d != nil {
		return exitPaused, fmt.Sprintf("active on %s, which is %s", v.Active, d.Words)
	}
	if code != 0 && len(v.Problems) > 0 {
		worst := v.Problems[0]
		for _, f := range v.Problems {
			if code == exitUnhealthy && f.Node == v.Active && v.Active != "" { // what it is unhealthy by, before what else is wrong
				worst = f
			}
		}
		words += ": " + worst.What
	}
	return code, words
}

// total counts services by how they are.
func total(services []control.ServiceStatus) string {
	counts, held := map[int]int{}, "paused"
	for _, v := range services {
		code, _ := judged(v)
		if counts[code]++; code == exitPaused && !v.Paused {
			held = "paused or drained"
		}
	}
	text := count(len(services), "service") + ":"
	for _, part := range []struct {
		code int
		what string
	}{{exitDown, "active nowhere"}, {exitUnhealthy, "unhealthy"}, {exitPaused, held}, {0, "active and ok"}} {
		if n := counts[part.code]; n > 0 {
			text += fmt.Sprintf(" %d %s,", n, part.what)
		}
	}
	return strings.TrimRight(text, ":,") + "."
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
	{head: "SERVICE", shrinks: true}, {head: "ACTIVE", shrinks: true}, {head: "SINCE", right: true}, {head: "HEALTH"}, {head: "STANDBYS", right: true},
}

// paper is what a status is written on, and how.
type paper struct {
	screen
	flags    []string // that make a command speak of the same cluster
	all      bool     // a line for each node, whatever the number of services
	filtered bool     // not all services are shown
}

// writeStatus prints the table.
func writeStatus(w io.Writer, to paper, s control.Status, now time.Time) error {
	if len(s.Services) == 0 {
		_, err := fmt.Fprintln(w, strings.Join(append(to.nothing(s), to.drained(s)...), "\n"))
		return err
	}
	short := !to.all && len(s.Services) > manyServices
	columns := statusColumns
	if short {
		columns = briefColumns
	}
	var rows []row
	for _, v := range s.Services {
		if short {
			rows = append(rows, to.brief(v, now)...)
		} else {
			rows = append(rows, statusRows(to.screen, v, now, to.flags)...)
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
	rows = append(rows, row{notes: to.drained(s)})
	for _, words := range otherFiles(s.Services) {
		rows = append(rows, row{notes: to.paintAll(yellow, note(to.width, words))})
	}
	if len(s.Services) > 1 {
		rows = append(rows, row{notes: wrap(total(s.Services), to.width)})
	}
	return writeTable(w, to.screen, columns, rows)
}

// nothing tells why there is no service to show.
func (to paper) nothing(s control.Status) []string {
	switch {
	case to.filtered:
		return []string{"No such service."}
	case len(s.Nodes) > 0:
		return wrap(fmt.Sprintf("%s is connected, and its services are starting, or it has none.", s.Nodes[0].Node), to.width)
	}
	return append(wrap("Nothing of Understudy is below "+s.Where+". If that is the right place, start a service on two nodes or more:", to.width),
		command(to.width, withFlags(control.Remedy{Words: []string{"understudy run", "--service NAME"}, Wraps: "COMMAND"}, to.flags)...)...)
}

// brief is one line for a service, and what is gravely wrong with it.
func (to paper) brief(v control.ServiceStatus, now time.Time) []row {
	r := row{cells: []string{v.Service, cmp.Or(v.Active, "nobody"), since(v.Since, now), "", "0"}, colours: make([]colour, 5)}
	standbys := 0
	for _, m := range v.Members {
		if m.Node == v.Active {
			r.cells[3], r.colours[3] = string(m.Health), healthColours[m.Health]
		} else if m.Role == election.RoleStandby && m.Health == election.HealthOK {
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
	r.notes = problemLines(to.screen, v, to.flags, func(f control.Problem) bool { return f.Level == control.Fault })
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
			r.notes = problemLines(to, v, flags, func(f control.Problem) bool { return f.Node == m.Node && !strings.Contains(f.What, " is "+d.Words) })
		}
		if len(r.notes) == 0 && m.Drained == nil && m.Why != "" && m.Why != v.Order && !saidOnce(v, m.Why) {
			r.notes = note(to.width, m.Node+": "+m.Why)
		}
		if len(r.notes) == 0 && m.Node == v.Active && len(v.Failsafe) > 0 {
			r.notes = note(to.width, "failsafe: without ZooKeeper it keeps running as long as these nodes agree not to start it: "+strings.Join(v.Failsafe, ", "))
		}
		rows = append(rows, r)
	}
	if len(rows) == 0 {
		rows = append(rows, row{cells: []string{"", "nobody", "", "", "", ""}})
	}
	rows[0].cells[0] = v.Service
	return append(rows, row{notes: append(copyLines(to, v, now), problems(to, v, "", flags)...)})
}

// saidOnce reports whether a problem of the service as a whole has a node's reason already.
func saidOnce(v control.ServiceStatus, why string) bool {
	return slices.ContainsFunc(v.Problems, func(f control.Problem) bool { return f.Node == "" && strings.Contains(f.What, " is: "+why+".") })
}

var roleColours = map[election.Role]colour{
	election.RoleActive: green, election.RoleClaiming: yellow, election.RoleFencing: yellow, election.RoleStopping: yellow,
	election.RolePaused: yellow, election.RoleFailed: red, election.RoleUnknown: red,
}

var healthColours = map[election.Health]colour{
	election.HealthStarting: yellow, election.HealthFailing: red, election.HealthUnfit: yellow, election.HealthFailed: red, election.HealthUnknown: red,
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
	case do.Here:
		return do.Words
	case do.Wraps != "" && i >= 0:
		return []string{do.Words[0], flags[i]} // the same file, on the other node
	case do.Wraps != "":
		flags = append(slices.Clip(flags), "-- "+do.Wraps)
	}
	return slices.Concat(do.Words, flags)
}
