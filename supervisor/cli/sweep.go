package cli

import (
	"time"

	"github.com/spf13/cobra"

	"understudy/supervisor/child"
)

// guardianPatience is how long guardians may take once the supervisor is gone. They need milliseconds to end children, and
// then they close the session with ZooKeeper: one that they cannot close by then ends by itself.
const guardianPatience = 5 * time.Second

func sweepCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "sweep",
		Short: "For systemd, as ExecStopPost=: wait for the guardians of a supervisor that has ended, and kill what they left",
		Long: "Waits until the guardians of the systemd unit that it belongs to are gone, which end what a killed supervisor left\n" +
			"and hand its services over; then kills what is left of the unit. systemd alone would kill the guardians, too.",
		Example: "  ExecStopPost=-/usr/bin/understudy sweep",
		Args:    exactArgs(0, "no arguments"),
		Hidden:  true,
		RunE:    func(cmd *cobra.Command, _ []string) error { return child.SweepUnit(cmd.Context(), guardianPatience) },
	}
}
