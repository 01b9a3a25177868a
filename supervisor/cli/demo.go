package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"understudy/supervisor/demo"
)

// Nodes of a demo.
const (
	fewestNodes = 2
	mostNodes   = 9
)

func demoCommand() *cobra.Command {
	var cfg demo.Config
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "demo [--nodes N] [--hold] [-- COMMAND [ARG...]]",
		Short: "Show a whole hot-standby set on this machine, and break it",
		Long: "Starts an embedded ZooKeeper and several supervisors as real processes on this machine, with nothing to install and\n" +
			"no privileges. Then it breaks the active one in every way - stop, kill -9, freeze, cut off - and measures how long\n" +
			"nothing ran and whether two ever ran at once. Everything is gone when it ends. Exit code 1: two ran at once.",
		Example: "  understudy demo\n  understudy demo --nodes 5 --hold\n  understudy demo -- python3 -m http.server 8080",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && cmd.ArgsLenAtDash() != 0 {
				return usage("write the command after `--`, as in `understudy demo -- COMMAND`")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if cfg.Nodes < fewestNodes || cfg.Nodes > mostNodes {
				return usage("--nodes must be from %d to %d", fewestNodes, mostNodes)
			}
			cfg.Command = args
			return runDemo(cmd.Context(), cfg, asJSON)
		},
	}
	cmd.Flags().SetInterspersed(false) // those after a COMMAND are its own
	cmd.Flags().IntVar(&cfg.Nodes, "nodes", 3, "how many nodes")
	cmd.Flags().BoolVar(&cfg.Hold, "hold", false, "stay up afterwards for your own tests, with the page, until Ctrl-C")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the table as JSON, and the show to stderr")
	cmd.AddCommand(&cobra.Command{
		Use: "program DIR [-- COMMAND [ARG...]]", Hidden: true, Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return demo.Program(cmd.Context(), args[0], args[1:]) },
	})
	return cmd
}

func runDemo(ctx context.Context, cfg demo.Config, asJSON bool) error {
	out := os.Stdout
	if asJSON {
		out = os.Stderr
	}
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this binary: %w", err)
	}
	if len(cfg.Command) > 0 {
		if _, err := exec.LookPath(cfg.Command[0]); err != nil {
			return usage("%s is no program that can be run here: name one that is installed, or its path", cfg.Command[0])
		}
	}
	cfg.Exe, cfg.Call, cfg.Out, cfg.Pause = exe, called(), out, time.Second
	hurry, again := make(chan struct{}), make(chan os.Signal, 1)
	cfg.Hurry = hurry
	defer context.AfterFunc(ctx, func() { // the first signal has ended ctx; the second one is waited for as long as this process lasts
		signal.Notify(again, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		<-again
		close(hurry)
	})()
	report, err := demo.Run(ctx, cfg)
	if err != nil && !errors.Is(err, demo.ErrOverlap) {
		return err
	}
	if asJSON {
		if werr := writeJSON(os.Stdout, report); werr != nil {
			return werr
		}
		return err
	}
	return errors.Join(writeReport(out, screenOf(out), report), err)
}

func writeReport(w io.Writer, to screen, r demo.Measurements) error {
	columns := []column{{head: "FAILURE OF THE ACTIVE NODE"}, {head: "FROM -> TO"}, {head: "NOTHING RAN", right: true},
		{head: "TWO RAN", right: true}}
	rows := make([]row, 0, len(r.Faults))
	for _, f := range r.Faults {
		overlap := "never"
		if f.OverlapMs > 0 {
			overlap = fmt.Sprintf("%.1f ms", f.OverlapMs)
		}
		rows = append(rows, row{cells: []string{f.What, f.From + " -> " + f.To, fmt.Sprintf("%.1f ms", f.GapMs), overlap}})
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	if err := writeTable(w, to, columns, rows); err != nil {
		return err
	}
	verdict := "After every failure another node ran the program automatically, and two copies never ran at once."
	if r.OverlapMs > 0 {
		verdict = "Another node took over, but two copies ran at the same time: that must not happen."
	}
	_, err := fmt.Fprintf(w, "\n%s\n", strings.Join(wrap(verdict+" Measured "+r.Measured+".", to.width), "\n"))
	return err
}
