package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"understudy/supervisor/child/journal"
	"understudy/supervisor/child/runas"
	"understudy/supervisor/config"
	"understudy/supervisor/control"
	"understudy/supervisor/printable"
	"understudy/supervisor/safefile"
)

// logsFlags are those of `logs`.
type logsFlags struct {
	clusterFlags
	lines  int
	follow bool
	quiet  bool // it is not told that the service is active on another node
}

func logsCommand() *cobra.Command {
	var f logsFlags
	cmd := &cobra.Command{
		Use:   "logs SERVICE",
		Short: "Show the recent output of a service's programs on this node",
		Long: "Runs tail(1) on the service's log files. Each node has its own: " +
			"if the service is active on another one, its name is given. The output of " +
			"a program without a log file goes where the supervisor's own goes. Where that is systemd's journal, journalctl(1) shows it.",
		Example: "  understudy logs redis\n  understudy logs web -n 1000 --follow",
		Args:    exactArgs(1, "one service"),
		RunE:    func(cmd *cobra.Command, args []string) error { return f.show(cmd.Context(), args[0]) },
	}
	f.register(cmd)
	cmd.ValidArgsFunction = f.services
	flags := cmd.Flags()
	flags.IntVarP(&f.lines, "lines", "n", 100, "how many lines")
	flags.BoolVarP(&f.follow, "follow", "f", false, "then print new lines as they come, also after a rotation, until Ctrl-C")
	f.Config, flags.Lookup("config").Usage = config.DefaultFile, "the config `file` (default "+config.DefaultFile+")"
	return cmd
}

func (f *logsFlags) show(ctx context.Context, service string) error {
	if f.lines < 0 {
		return usage("--lines must not be negative")
	}
	if absentFile(f.Config) && f.set != nil && !f.set.Changed("config") {
		where, asking := "", f.clusterFlags
		asking.Config = ""
		if asked := asking.quickStatus(ctx, quickly, service).Services; len(asked) > 0 && asked[0].Active != "" {
			where = service + " is active on " + asked[0].Active + ". "
		}
		return usage("%s%s does not exist, and without a config the output is in the supervisor's own log: "+
			"see `journalctl`, `docker logs` or `kubectl logs`", where, f.Config)
	}
	c, err := f.read()
	if err != nil {
		return err
	}
	s, ok := c.Services[service]
	if !ok {
		return didYouMean(&control.UnknownError{Kind: "service", Name: service, Known: c.ServiceNames()})
	}
	tell := func(text string) { fmt.Fprintln(os.Stderr, "understudy: "+printable.Text(text)) }
	if f.quiet {
	} else if asked := f.quickStatus(ctx, quickly, service).Services; len(asked) > 0 && asked[0].Active != "" && asked[0].Active != c.Node {
		host, _ := os.Hostname() // without one each host is another
		tell(activeElsewhere(asked[0], host, f.Config))
	}
	words, journaled := []string{"-n", fmt.Sprint(f.lines)}, []string{"-n", fmt.Sprint(f.lines), "-t", service}
	if f.follow {
		words, journaled = append(words, "-F"), append(journaled, "-f")
	}
	if len(s.Processes) > 1 {
		words = append(words, "-v") // the names of the files
	}
	words = append(words, "--")
	var opened []*os.File
	for _, p := range s.Processes {
		file, name, err := f.open(ctx, service, p)
		if err != nil {
			tell(err.Error())
			continue
		}
		defer file.Close()
		if name == "" {
			name = fmt.Sprintf("/dev/fd/%d", 3+len(opened))
			if f.follow || len(s.Processes) > 1 {
				tell(p.Log.File + " is in a folder that others may change: it is read as " + name +
					", and what comes after its next rotation is not shown")
			}
		}
		words, opened = append(words, name), append(opened, file)
	}
	inFiles := slices.ContainsFunc(s.Processes, func(p config.Process) bool { return p.Log.File != "" })
	switch {
	case !inFiles && journal.Runs():
		return shown(ctx, nil, "journalctl", journaled...)
	case len(opened) == 0:
		return exitStatus(exitFailed)
	}
	return shown(ctx, opened, "tail", words...)
}

// activeElsewhere is where the output of a service is that another node runs. This host may run that node, too: with `run --node`, or with
// another config.
func activeElsewhere(s control.ServiceStatus, host, file string) string {
	if s.Host != "" && s.Host == host {
		return fmt.Sprintf("%s is active on %s now, another node of this host: name its config with --config if it is not %s", s.Service,
			s.Active, file)
	}
	return fmt.Sprintf("%s is active on %s now, and its output is there: type `understudy logs %s` on %s", s.Service, s.Active, s.Service,
		s.Active)
}

// read reads the config that names the files.
func (f *logsFlags) read() (*config.Config, error) {
	c, ignored, err := config.LoadPartly(f.Config)
	if err != nil {
		return nil, usage("--config: %s", oneLine(err))
	}
	if len(ignored) > 0 {
		fmt.Fprintf(os.Stderr, "understudy: warning: %s has %s: %s\n", f.Config, count(len(ignored), "error"),
			printable.Text(ignored[0].String()))
		f.warned = true
	}
	return c, nil
}

// open opens a program's log, unless the program's user may have put something else in its place. name is "" where that user may do so
// later, too: tail opens a log that it follows again after each rotation.
func (f *logsFlags) open(ctx context.Context, service string, p config.Process) (file *os.File, name string, err error) {
	if p.Log.File == "" {
		return nil, "", fmt.Errorf("%s has no log file, its output goes where the supervisor's own goes: "+
			"`journalctl -t %s -n %d` under systemd", cmp.Or(strings.TrimPrefix(p.Name, config.MainProcess), service), service, f.lines)
	}
	var who safefile.Who // one who is not known is trusted with nothing
	if account, err := runas.LookupUser(ctx, p.User, p.Group); err == nil {
		who = account.Who()
	}
	file, err = safefile.Open(p.Log.File, who)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("there is no %s: the program has not run on this node", p.Log.File)
	}
	if safefile.Own(filepath.Dir(p.Log.File), safefile.Setting) == nil {
		name = p.Log.File
	}
	return file, name, err
}

// shown runs a command that shows output, and ends with this process at the latest. A terminal does not obey what a program said.
func shown(ctx context.Context, files []*os.File, name string, words ...string) error {
	cmd := exec.CommandContext(ctx, name, words...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // of the main thread, which never ends before
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = os.Stdout, os.Stderr, files
	if terminalWidth(os.Stdout) > 0 {
		cmd.Stdout = &printable.Lines{To: os.Stdout}
	}
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exitStatus(max(exit.ExitCode(), 0)) // 0 where a signal ended it: with Ctrl-C it is done
	}
	return err
}
