package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"understudy/supervisor/child"
	"understudy/supervisor/child/logfile"
	"understudy/supervisor/config"
	"understudy/supervisor/control"
	"understudy/supervisor/printable"
	"understudy/supervisor/safefile"
)

// logsFlags are those of `logs`.
type logsFlags struct {
	clusterFlags
	process string
	lines   int
	follow  bool
}

func logsCommand() *cobra.Command {
	var f logsFlags
	cmd := &cobra.Command{
		Use:   "logs SERVICE",
		Short: "Show the recent output of a service's program on this machine",
		Long: "Shows the end of the service's log file, and of rotated files when that one is short. Each machine has its own log:\n" +
			"look on the one where the service is active. The output of a program without a log file goes where the supervisor's\n" +
			"own output goes, such as the journal.",
		Example: "  understudy logs redis\n  understudy logs web --process nginx -n 1000 --follow",
		Args:    exactArgs(1, "one service"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.show(cmd.Context(), os.Stdout, os.Stderr, args[0])
		},
	}
	f.register(cmd)
	cmd.ValidArgsFunction = f.configured
	flags := cmd.Flags()
	flags.StringVar(&f.process, "process", "", "only the process of this `name`")
	flags.IntVarP(&f.lines, "lines", "n", 100, "how many lines")
	flags.BoolVarP(&f.follow, "follow", "f", false, "then print new lines as they come, until Ctrl-C")
	complete(cmd, "process", f.processes)
	complete(cmd, "lines", none)
	flags.Lookup("config").Usage = "the config `file` (default " + config.DefaultFile + ")"
	return cmd
}

// source is a program whose output is in a file.
type source struct {
	process, file string
	who           safefile.Who // whose program it is
}

func (f *logsFlags) show(ctx context.Context, out, complaints io.Writer, service string) error {
	if f.lines < 0 {
		return usage("--lines must not be negative")
	}
	tell := func(text string) { fmt.Fprintln(complaints, "understudy: "+printable.Text(text)) }
	c, err := f.read()
	if err != nil {
		return err
	}
	sources, passed, err := f.sources(ctx, c, service)
	if err != nil {
		return err
	}
	elsewhere := f.elsewhere(ctx, c, service)
	journal := "passed through to the supervisor's own stdout and stderr: `journalctl -u understudy -t " + service + "` under systemd"
	if len(sources) == 0 {
		return fmt.Errorf("%s has no log file, its output is %s%s", service, journal, orEmpty("; ", elsewhere))
	}
	if elsewhere != "" {
		tell(elsewhere)
	}
	if len(passed) > 0 {
		tell("the output of " + strings.Join(passed, ", ") + " is " + journal)
	}
	return f.print(ctx, out, tell, sources)
}

// read reads the config that tells where the logs are.
func (f *logsFlags) read() (*config.Config, error) {
	if f.Config == "" {
		f.Config = config.DefaultFile
		if _, err := os.Stat(f.Config); errors.Is(err, fs.ErrNotExist) {
			return nil, usage("where is the log? name the config with --config (%s does not exist); a command that `understudy run` wraps "+
				"writes to the supervisor's own stdout and stderr", f.Config)
		}
	}
	c, err := config.LoadFile(f.Config)
	if err != nil {
		return nil, usage("%s", oneLine(err))
	}
	return c, nil
}

// sources finds the logs that are asked for, and the processes that have none.
func (f *logsFlags) sources(ctx context.Context, c *config.Config, service string) (sources []source, passed []string, err error) {
	s, ok := c.Services[service]
	if !ok {
		return nil, nil, didYouMean(&control.UnknownError{Kind: "service", Name: service, Known: c.ServiceNames()})
	}
	var names []string
	for _, p := range s.Processes {
		names = append(names, p.Name)
		switch {
		case f.process != "" && p.Name != f.process:
		case p.Log.File == "":
			passed = append(passed, p.Name)
		default:
			sources = append(sources, source{p.Name, p.Log.File, writes(ctx, p)})
		}
	}
	if f.process != "" && !slices.Contains(names, f.process) {
		return nil, nil, didYouMean(&control.UnknownError{Kind: "process", Name: f.process, Known: names})
	}
	return sources, passed, nil
}

// quickly is how long is waited for what is good to know, and not what was asked for.
const quickly = 500 * time.Millisecond

// writes looks up who a program runs as. One who is not known is trusted with nothing.
func writes(ctx context.Context, p config.Process) safefile.Who {
	if p.User != "" || p.Group != "" {
		if account, err := child.LookupUser(ctx, p.User, p.Group); err == nil {
			return account.Who()
		}
	}
	return safefile.Who{}
}

// elsewhere tells that the service is active on another node, as far as ZooKeeper can be asked quickly.
func (f *logsFlags) elsewhere(ctx context.Context, c *config.Config, service string) string {
	s := f.glance(ctx, quickly, service)
	if len(s.Services) == 0 {
		return ""
	}
	switch v := s.Services[0]; v.Active {
	case c.Node:
		return ""
	case "":
		return service + " is active on no node now"
	default:
		return fmt.Sprintf("%s is active on %s now: its output is there, and here is what it wrote on %s", service, v.Active, c.Node)
	}
}

// print prints the last lines of each log, and what comes then.
func (f *logsFlags) print(ctx context.Context, out io.Writer, tell func(string), sources []source) error {
	current := ""
	head := func(s source) func() error {
		return func() error {
			if len(sources) == 1 || current == s.process {
				return nil
			}
			between := ""
			if current != "" {
				between = "\n"
			}
			current = s.process
			_, err := fmt.Fprintf(out, "%s==> %s (%s) <==\n", between, s.process, s.file)
			return err
		}
	}
	var readers []*logfile.Reader
	for _, s := range sources {
		r := &logfile.Reader{Path: s.file, Who: s.who, Out: showing(out), Tell: tell, Head: head(s)}
		defer r.Close()
		err := r.Last(f.lines)
		if errors.Is(err, fs.ErrNotExist) && (f.follow || len(sources) > 1) {
			tell("there is no " + s.file + " yet: the program has not run on this machine")
		} else if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("there is no %s: the program has not run on this machine", s.file)
		} else if err != nil {
			return err
		}
		readers = append(readers, r)
	}
	if !f.follow {
		return nil
	}
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		for _, r := range readers {
			if err := r.More(); err != nil {
				return err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// showing is where to write what a program said: a terminal does not obey it. Elsewhere it is passed on as it is.
func showing(out io.Writer) io.Writer {
	if terminalWidth(out) == 0 {
		return out
	}
	return &printable.Lines{To: out}
}

// followEvery is how often a log is looked at: soon enough for a reader, and cheap.
const followEvery = 100 * time.Millisecond

func orEmpty(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}
