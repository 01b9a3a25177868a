// Package cli is the command line.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"understudy/supervisor/child/journal"
	"understudy/supervisor/config"
	"understudy/supervisor/handoff"
	"understudy/supervisor/printable"
)

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
	exitLate   = 3
	exitNoLock = 75 // EX_TEMPFAIL
)

// usageError says that the words or the config are wrong.
type usageError struct{ error }

func usage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errTimeout says that --timeout ran out.
var errTimeout = errors.New("timed out")

// exitStatus is a wrapped command's own exit code.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("the command ended with code %d", int(e)) }

// Main runs a command line and returns the exit code. Operations is the page that explains symptoms and lines of the log.
func Main(version, operations string, args []string) int {
	ctx := context.Background()
	if len(args) > 0 && args[0] == "run" {
		ctx = withImage(ctx) // as early as can be: it may be another image's successor
	} else {
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		defer stop()
	}
	root := Root(version, operations)
	root.SetArgs(args)
	root.SetOut(stdout)
	cmd, err := root.ExecuteContextC(ctx)
	return exitCode(cmp.Or(err, unknown(cmd), stdout.err))
}

// stdout is where commands print: one that could not write there fails, although it did not look.
var stdout = &output{}

// output has the first error of writing to os.Stdout.
type output struct{ err error }

func (o *output) Write(text []byte) (int, error) {
	n, err := os.Stdout.Write(text)
	o.err = cmp.Or(o.err, err) // a closed pipe has ended the process by SIGPIPE
	return n, err
}

// unknown is the error of a command that does not exist, whose help is asked for.
func unknown(cmd *cobra.Command) error {
	if help, _ := cmd.Flags().GetBool("help"); !help || !cmd.HasAvailableSubCommands() {
		return nil
	}
	return subcommand(cmd, cmd.Flags().Args())
}

// Root is the command that has all others, for those who describe them, too.
func Root(version, operations string) *cobra.Command {
	root := &cobra.Command{
		Use:   "understudy",
		Short: "One program, running on exactly one host, whatever breaks",
		Long: "Understudy runs a program on exactly one of several hosts. ZooKeeper decides which one. If that host, its\n" +
			"network or the program fails, another host makes sure that the old copy is dead, and starts its own.\n\n" +
			"Commands that ask or order something use --zk or --config, or else UNDERSTUDY_ZK, or else " + config.DefaultFile + ".\n\n" +
			"After `source <(understudy completion bash)` the tab key completes the names of services and nodes; likewise in zsh and fish.",
		Example: "  understudy demo\n" +
			"  understudy run --zk zk1,zk2,zk3 --service db -- /usr/bin/db --port 80\n" +
			"  understudy status --zk zk1,zk2,zk3",
		Version:       buildOf(version).String(),
		SilenceErrors: true, SilenceUsage: true,
		Args: subcommand, PersistentPreRunE: checkValues,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(runCommand(version), checkCommand(), importCommand(), statusCommand(), historyCommand(), logsCommand(),
		explainCommand(operations), switchoverCommand(), pauseCommand(), resumeCommand(), stopCommand(), startCommand(),
		drainCommand(), undrainCommand(), rollCommand(), balanceCommand(), forgetCommand(), restartCommand(),
		reloadCommand(), recloneCommand(),
		fenceCommand(), devCommand(), demoCommand(), copyCommand(), versionCommand(version), sweepCommand(), reexecCommand(),
		goesOnCommand(), addressCommand(), mountCommand(), ocfCommand(), undoCommand())
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetHelpCommand(helpCommand())
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if unknown(cmd) == nil { // else Main fails
			help(cmd, args)
		}
	})
	root.CompletionOptions.HiddenDefaultCmd = true
	root.InitDefaultCompletionCmd("")
	describeCompletion(root)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", fmt.Sprint(".FlagUsagesWrapped ", lineWidth)))
	fold(root)
	return root
}

type imageKey struct{}

// withImage listens from now on, for imageOf.
func withImage(ctx context.Context) context.Context {
	i := handoff.NewImage()
	i.Listen()
	return context.WithValue(ctx, imageKey{}, i)
}

// imageOf is the image that listens since Main, or one that does so from now on.
func imageOf(ctx context.Context) *handoff.Image {
	if i, ok := ctx.Value(imageKey{}).(*handoff.Image); ok {
		return i
	}
	return imageOf(withImage(ctx))
}

func exitCode(err error) int {
	if err == nil {
		return 0
	}
	if status, ok := errors.AsType[exitStatus](err); ok {
		return int(status)
	}
	member, isMember := errors.AsType[memberError](err)
	last := newOutlet(os.Stderr) // nobody may read it
	text := "understudy: " + printable.Text(err.Error())
	if journal.Is(os.Stderr) {
		text = fmt.Sprintf("<%d>%s", priorities[hclog.Error], text)
	}
	fmt.Fprintln(last, text)
	last.flush()
	_, wrong := errors.AsType[usageError](err)
	_, faulty := errors.AsType[config.Faults](err)
	switch {
	case isMember:
		return member.code
	case wrong || faulty:
		return exitUsage
	case errors.Is(err, errTimeout):
		return exitLate
	case errors.Is(err, errNoLock):
		return exitNoLock
	}
	return exitFailed
}

// helpCommand replaces cobra's, which prints the help of the root for an unknown command.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Show what a command does", Example: "  understudy help fence confirm",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err == nil && len(rest) > 0 {
				err = subcommand(about, rest)
			}
			if err != nil {
				return err
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

// subcommand is for commands that do nothing of their own.
func subcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	switch {
	case cmd.ArgsLenAtDash() != 0:
	case slices.Contains(names, args[0]):
		return usage("%q is a command of %s: leave `--` out", args[0], cmd.CommandPath())
	case !cmd.HasParent():
		return usage("`run` is missing before `--`: say `understudy run --zk HOSTS -- COMMAND`")
	}
	return usage("unknown command %q%s (see `%s --help`)", args[0], config.DidYouMean(args[0], names), cmd.CommandPath())
}

// nearFlag tells which flag may have been meant by one that does not exist.
func nearFlag(cmd *cobra.Command, err error) string {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return ""
	}
	name := cmp.Or(unknown.GetSpecifiedShortnames(), unknown.GetSpecifiedName()) // as in -zk
	if name == "at" {
		return fmt.Sprintf(": to have it done later, systemd-run --on-calendar='2026-12-31 02:00' %s ...", cmd.CommandPath())
	}
	var all []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" {
			all = append(all, "--"+f.Name)
		}
	})
	const few = 10
	hint := config.DidYouMean("--"+name, all)
	if hint == "" && len(all) <= few {
		hint = ": " + cmd.Name() + " has " + strings.Join(all, ", ")
	}
	return hint
}

// fold breaks the texts of a command, and of those below it, into lines that any terminal holds.
func fold(cmd *cobra.Command) {
	paragraphs := strings.Split(cmd.Long, "\n\n")
	for i, text := range paragraphs {
		paragraphs[i] = strings.Join(wrap(text, lineWidth), "\n")
	}
	cmd.Long = strings.Join(paragraphs, "\n\n")
	for _, c := range cmd.Commands() {
		fold(c)
	}
}

// exactArgs is cobra's, as a usage error.
func exactArgs(n int, what string) cobra.PositionalArgs { return takes(n, n, what) }

// atMostOne is for commands that take a service or none.
var atMostOne = takes(0, 1, "one service at most")

// takes also knows the second word that is the value of a flag.
func takes(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= least && len(args) <= most {
			return nil
		}
		if err := checkValues(cmd, args); err != nil {
			return err
		}
		for _, flag := range []string{"to", "node"} {
			if most == 1 && len(args) == 2 && cmd.Flags().Lookup(flag) != nil {
				return usage("%s takes %s: if %s is a node, write `%s %s --%s %[3]s`", cmd.Name(), what, printable.Word(args[1]),
					cmd.CommandPath(), printable.Word(args[0]), flag)
			}
		}
		return usage("%s takes %s (see `%s --help`)", cmd.Name(), what, cmd.CommandPath())
	}
}
