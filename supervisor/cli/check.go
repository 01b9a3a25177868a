package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"understudy/supervisor"
	"understudy/supervisor/config"
	"understudy/supervisor/control"
	"understudy/supervisor/printable"
	"understudy/supervisor/unit"
)

// checkFlags are those of `check`.
type checkFlags struct {
	file, node            string
	effective, asJSON     bool
	repair, elsewhere, zk bool
}

func checkCommand() *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Validate a config file",
		Long: "Reads a config file and the files that it includes, and prints every error as\n" +
			"`file:line:column: key: what is wrong`; then it exits with 2. It also exits with 2 where `run` would fail on this machine.\n" +
			"The overrides of all nodes are checked, whichever node this is.\n" +
			"Likely mistakes, and users, programs and directories missing on this machine, are warnings.",
		Example: "  understudy check /etc/understudy/understudy.yaml\n" +
			"  understudy check --effective    # with every default filled in\n" +
			"  understudy check --effective --node db-2    # of one node\n" +
			"  understudy check --zk    # and look at its ZooKeeper servers\n",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 || len(args) == 1 && cmd.Flags().Changed("config") {
				return usage("check takes one file (see `%s --help`)", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if why := config.NodeNameFault(f.node); why != "" && cmd.Flags().Changed("node") {
				return usage("--node: %s", why)
			}
			if f.zk && f.effective {
				return usage("--zk does not go with --effective")
			}
			if len(args) == 1 {
				f.file = args[0]
			}
			servers, named := os.Getenv("UNDERSTUDY_ZK"), len(args) == 1 || cmd.Flags().Changed("config")
			switch {
			case !f.zk || !absentFile(f.file):
			case named && !strings.Contains(f.file, "/") && filepath.Ext(f.file) != ".yaml":
				return usage("%s is no file, and %s", f.file, noServers)
			case !named && servers != "":
				return f.ensemble(cmd.Context(), cmd.OutOrStdout(), servers)
			}
			return f.run(cmd)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.file, "config", config.DefaultFile, "the file")
	flags.StringVar(&f.node, "node", "", "read the file as this `node` does (default: the one that the file names, or the hostname)")
	flags.BoolVar(&f.effective, "effective", false, "print the config with all defaults filled in")
	flags.BoolVar(&f.asJSON, "json", false, "print the verdict, or with --effective the config, as JSON")
	flags.BoolVar(&f.elsewhere, "elsewhere", false, "leave out what this machine has or lacks: the file is for another one")
	flags.BoolVar(&f.repair, "repair-acl", false, "then let only the credentials in zookeeper.auth change the znodes below the root")
	flags.BoolVar(&f.zk, "zk", false,
		"then ask the ZooKeeper servers of the file (without one: of UNDERSTUDY_ZK), one by one, "+
			"and tell what their setup means for failovers")
	return cmd
}

const noServers = "--zk takes no servers: it asks those of a config file, or without one those in UNDERSTUDY_ZK"

// verdict is what `check --json` prints.
type verdict struct {
	OK       bool     `json:"ok"`
	Services int      `json:"services"`
	Files    []string `json:"files"`
	Faults   []remark `json:"faults"`
	Warnings []remark `json:"warnings"`
	Notes    []string `json:"notes"` // what is said of the config as a whole

	ZooKeeper *lookedAt `json:"zookeeper,omitempty"` // with --zk
}

// remark is a fault or a warning.
type remark struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Key     string `json:"key,omitempty"`
	Message string `json:"message"`
}

func remarks(faults config.Faults) []remark {
	list := make([]remark, 0, len(faults))
	for _, f := range faults {
		list = append(list, remark{f.File, f.Line, f.Column, f.Key, f.Message})
	}
	return list
}

func (f *checkFlags) run(cmd *cobra.Command) error {
	if err := f.check(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr()); err != nil || !f.repair {
		return err
	}
	v := visit{clusterFlags: clusterFlags{Config: f.file}, timeout: time.Minute}
	return v.visits(cmd.Context(), func(ctx context.Context, c *control.Cluster) error {
		r, err := c.RepairACL(ctx)
		for _, path := range r.Repaired {
			fmt.Fprintln(cmd.OutOrStdout(), "repaired:", printable.Text(path))
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%d of %s were open to others\n", len(r.Repaired), count(r.Seen, "znode"))
		if len(r.Refused) > 0 {
			return fmt.Errorf("cannot repair %s, which belong to other credentials: %s", count(len(r.Refused), "znode"),
				strings.Join(r.Refused, ", "))
		}
		return nil
	})
}

func (f *checkFlags) check(ctx context.Context, out, complaints io.Writer) error {
	read := config.Read
	if f.elsewhere && !f.zk {
		read = config.ReadElsewhere
	}
	r := read(f.file, f.node)
	warnings := r.Warnings
	if !f.elsewhere {
		var here config.Faults
		r, here = f.here(r)
		warnings = slices.Concat(warnings, here)
		if r.Config != nil {
			warnings = append(warnings, crowded(r)...)
		}
	}
	var looked *lookedAt
	if f.zk && r.Config != nil {
		looked = lookAt(ctx, r.Config, !f.elsewhere)
	}
	switch {
	case f.effective && r.Config != nil:
		f.remark(complaints, r.Faults, warnings)
		return f.print(out, r.Config)
	case f.effective: // what is read from a pipe is a config or nothing
		f.remark(complaints, r.Faults, warnings)
	case f.asJSON:
		v := verdict{OK: r.Config != nil, Files: r.Files.Config, Faults: remarks(r.Faults), Warnings: remarks(warnings), Notes: []string{},
			ZooKeeper: looked}
		if r.Config != nil {
			v.Services = len(r.Config.Services)
			v.Notes = f.notes(r)
			v.OK = looked.fault() == nil
		}
		if err := writeJSON(out, v); err != nil {
			return err
		}
	default:
		f.remark(out, r.Faults, warnings)
		if r.Config != nil {
			if len(r.Config.Services) == 0 {
				fmt.Fprintln(out, "warning: there are no services: nothing runs with this file, "+
					"and a supervisor that has services keeps its previous config")
			}
			fmt.Fprintf(out, "ok: %s in %s\n", count(len(r.Config.Services), "service"), count(len(r.Files.Config), "file"))
			for _, note := range f.notes(r) {
				fmt.Fprintln(out, "note:", note)
			}
			looked.print(out)
		}
	}
	if r.Config == nil && len(r.Faults)+len(warnings) == 1 && !f.asJSON {
		return exitStatus(exitUsage) // the error is the one line
	}
	if r.Config == nil {
		return usage("%s is refused: %s", f.file, count(len(r.Faults), "error"))
	}
	return looked.fault()
}

// ensemble looks at the servers alone: there is no config file, as in a container that wraps a command.
func (f *checkFlags) ensemble(ctx context.Context, out io.Writer, named string) error {
	c := config.Default()
	cluster := clusterFlags{ZK: named}
	if err := cluster.apply(c); err != nil {
		return err
	}
	looked := lookAt(ctx, c, true)
	if f.asJSON {
		v := verdict{OK: looked.fault() == nil, Files: []string{}, Faults: []remark{}, Warnings: []remark{},
			Notes: noteExposure(c.ZooKeeper), ZooKeeper: looked}
		if err := writeJSON(out, v); err != nil {
			return err
		}
		return looked.fault()
	}
	fmt.Fprintf(out, "no config: %s does not exist, so only the servers in UNDERSTUDY_ZK are looked at\n", f.file)
	looked.print(out)
	return looked.fault()
}

// here adds what this machine lacks: as a fault where it keeps a supervisor from starting, else as a warning.
func (f *checkFlags) here(r config.LoadResult) (config.LoadResult, config.Faults) {
	if r.Config == nil {
		return r, nil
	}
	_, faults, _ := r.Dangers(lookPatience)
	if len(faults) > 0 { // what others can change is not tried
		return r.Refused(faults), nil
	}
	warnings := r.Here()
	c := r.Config
	_, secret := credentials(c)
	_, keys := listen(c, hclog.NewNullLogger())
	for _, err := range []error{secret, keys, unsecured(c)} {
		if err != nil {
			key, message, _ := strings.Cut(err.Error(), ": ")
			faults = append(faults, r.At(key, message))
		}
	}
	for _, name := range c.ServiceNames() {
		if err := unit.Unbounded(c.Services[name], true); err != nil {
			faults = append(faults, r.At("services."+name+".limits", err.Error()+" (on this machine)"))
		}
	}
	warnings = slices.DeleteFunc(warnings, func(w config.Fault) bool { // said once is enough
		text := strings.TrimSuffix(w.Message, " (on this machine)")
		return slices.ContainsFunc(faults, func(f config.Fault) bool { return f.Key == w.Key || strings.Contains(f.Message, text) })
	})
	return r.Refused(faults), warnings
}

// notes are what one should know of a config in which nothing is wrong.
func (f *checkFlags) notes(r config.LoadResult) []string {
	notes := noteExposure(r.Config.ZooKeeper)
	if all := r.Nodes(); f.node != "" && len(all) > 0 && !slices.Contains(all, f.node) { // it may be misspelt
		notes = append(notes, fmt.Sprintf("--node: the file does not name %s, but %s%s", f.node, strings.Join(all, ", "),
			config.DidYouMean(f.node, all)))
	}
	if f.elsewhere {
		return notes
	}
	c := r.Config
	here := supervisor.Config{Node: c.Node, Root: c.ZooKeeper.Root, Cluster: c.ZooKeeper.Name}
	for _, name := range c.ServiceNames() {
		var dirs []string
		if r := c.Services[name].Replicated; r != nil {
			dirs = append(dirs, r.StateDir)
		}
		if file := supervisor.Unfound(here, name, dirs...); file != "" {
			notes = append(notes, fmt.Sprintf("zookeeper.name: %s was left on this host for %s under another name, "+
				"and is not found under this one", file, name))
		}
	}
	return notes
}

func noteExposure(z config.ZooKeeper) []string {
	if note := z.Exposure(); note != "" {
		return []string{note}
	}
	return []string{}
}

func (f *checkFlags) remark(out io.Writer, faults, warnings config.Faults) {
	for _, fault := range faults {
		fmt.Fprintln(out, printable.Text(fault.String()))
	}
	for _, w := range warnings {
		fmt.Fprintf(out, "warning: %s\n", printable.Text(w.String()))
	}
}

func (f *checkFlags) print(out io.Writer, c *config.Config) error {
	if f.asJSON {
		return writeJSON(out, c)
	}
	text, err := config.Marshal(c)
	if err == nil {
		_, err = out.Write(text)
	}
	return err
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
