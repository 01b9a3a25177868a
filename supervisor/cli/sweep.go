package cli

import (
	"time"

	"github.com/spf13/cobra"

	"understudy/supervisor"
	"understudy/supervisor/child/box"
)

// guardianPatience is how long guardians may take once the supervisor is gone. They need milliseconds to end children, and
// then they close the session with ZooKeeper: one that they cannot close by then ends by itself.
const guardianPatience = 5 * time.Second

func sweepCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "sweep",
		Short: "For systemd, as ExecStopPost=: wait for the guardians of a supervisor that has ended, and kill leftover processes",
		Long: "Waits until the guardians in its own systemd unit have ended. They kill the programs of a killed supervisor, and\n" +
			"close its session, so that another node takes over. Then `sweep` kills all processes left in the unit. systemd alone\n" +
			"would kill the guardians, too.",
		Example: "  ExecStopPost=-/usr/bin/understudy sweep",
		Args:    exactArgs(0, "no arguments"),
		Hidden:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			unit, err := box.SweepUnit(cmd.Context(), guardianPatience)
			if err == nil {
				err = supervisor.Swept(cmd.Context(), unit)
			}
			return err
		},
	}
}
