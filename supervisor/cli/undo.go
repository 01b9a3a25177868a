package cli

import (
	"fmt"
	"io"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"understudy/supervisor"
)

// undoCommand is what a guardian starts to undo what its supervisor cannot.
func undoCommand() *cobra.Command {
	return &cobra.Command{
		Use: supervisor.UndoCommand, Hidden: true, Args: exactArgs(0, "no arguments"),
		Short:   "For guardians: undo what a service did, by its commands, for a supervisor that is gone",
		Example: "  understudy undo < NOTE",
		RunE: func(cmd *cobra.Command, _ []string) error {
			note, err := io.ReadAll(cmd.InOrStdin())
			if err != nil {
				return fmt.Errorf("read what to undo: %w", err)
			}
			ctx, stop := untilStopped(cmd.Context())
			defer stop()
			return supervisor.UndoOrphan(ctx, note, hclog.New(&hclog.LoggerOptions{Name: "understudy", Output: cmd.ErrOrStderr()}))
		},
	}
}
