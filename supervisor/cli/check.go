package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"understudy/supervisor"
	"understudy/supervisor/config"
	"understudy/supervisor/control"
	"understudy/supervisor/printable"
)

// checkFlags are those of `check`.
type checkFlags struct {
	file                      string
	effective, schema, asJSON bool
	repair                    bool
}

func checkCommand() *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check [--config FILE]",
		Short: "Validate a config file",
		Long: "Reads a config file and the files that it includes, and prints every fault as\n" +
			"`file:line:column: key: what is wrong`; then it exits with 2. Likely mistakes, and users, programs and\n" +
			"directories missing on this machine, are warnings: the file may be meant for another one.",
		Example: "  understudy check --config /etc/understudy/understudy.yaml\n" +
			"  understudy check --effective    # with every default filled in\n" +
			"  understudy check --schema > understudy.schema.json    # for editors",
		Args: exactArgs(0, "no arguments, but --config FILE"),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.file, "config", config.DefaultFile, "the file")
	flags.BoolVar(&f.effective, "effective", false, "print the config with all defaults filled in")
	flags.BoolVar(&f.asJSON, "json", false, "print the verdict, or with --effective the config, as JSON")
	flags.BoolVar(&f.repair, "repair-acl", false, "then let only the credentials in zookeeper.auth change the znodes below the root")
	flags.BoolVar(&f.schema, "schema", false, "print the JSON schema of config files, and read no file")
	return cmd
}

// verdict is what `check --json` prints.
type verdict struct {
	OK       bool     `json:"ok"`
	Services int      `json:"services"`
	Files    []string `json:"files"`
	Faults   []remark `json:"faults"`
	Warnings []remark `json:"warnings"`
	Notes    []string `json:"notes"` // what is said of the config as a whole
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
	if err := f.check(cmd.OutOrStdout(), cmd.ErrOrStderr()); err != nil || !f.repair {
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
			return fmt.Errorf("cannot repair %s, which belong to other credentials: %s", count(len(r.Refused), "znode"), strings.Join(r.Refused, ", "))
		}
		return nil
	})
}

func (f *checkFlags) check(out, complaints io.Writer) error {
	if f.schema {
		text, err := config.Schema()
		if err == nil {
			_, err = out.Write(text)
		}
		return err
	}
	r := config.Read(f.file)
	warnings := slices.Concat(r.Warnings, r.Here())
	if r.Config != nil {
		if err := supervisor.EnoughFiles(r.Config.Services); err != nil {
			warnings = append(warnings, config.Fault{File: f.file, Message: err.Error() + " (this holds for this shell; a unit has its own limits)"})
		}
	}
	_, grave := r.Dangers(lookPatience)
	r = r.Refused(grave)
	switch {
	case f.effective && r.Config != nil:
		f.remark(complaints, r.Faults, warnings)
		return f.print(out, r.Config)
	case f.effective: // what is read from a pipe is a config or nothing
		f.remark(complaints, r.Faults, warnings)
	case f.asJSON:
		v := verdict{OK: r.Config != nil, Files: r.Files.Config, Faults: remarks(r.Faults), Warnings: remarks(warnings), Notes: []string{}}
		if r.Config != nil {
			v.Services = len(r.Config.Services)
			v.Notes = f.notes(r.Config)
		}
		if err := writeJSON(out, v); err != nil {
			return err
		}
	default:
		f.remark(out, r.Faults, warnings)
		if r.Config != nil {
			fmt.Fprintf(out, "ok: %s in %s\n", count(len(r.Config.Services), "service"), count(len(r.Files.Config), "file"))
			for _, note := range f.notes(r.Config) {
				fmt.Fprintln(out, "note:", note)
			}
		}
	}
	if r.Config == nil {
		return usage("%s is refused: %s", f.file, count(len(r.Faults), "fault"))
	}
	return nil
}

// notes are what one should know of a config in which nothing is wrong.
func (f *checkFlags) notes(c *config.Config) []string {
	notes := []string{}
	for _, note := range []string{c.ZooKeeper.Exposure(), f.exposed(c)} {
		if note != "" {
			notes = append(notes, note)
		}
	}
	return notes
}

// exposed says what others than the credentials may change in ZooKeeper, as far as it can be asked quickly. It is not, where the file
// is for another machine or the credentials cannot be read.
func (f *checkFlags) exposed(c *config.Config) string {
	if c.ZooKeeper.Auth == nil || f.repair { // which tells more
		return ""
	}
	return briefly(context.Background(), &clusterFlags{Config: f.file}, quickly, func(ctx context.Context, c *control.Cluster) (string, error) {
		note, err := c.Exposed(ctx)
		if note != "" {
			err = nil // what was found until it failed
		}
		return note, err
	})
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
