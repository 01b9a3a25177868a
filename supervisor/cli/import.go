package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"understudy/supervisor/config/unitfile"
	"understudy/supervisor/printable"
)

func importCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "import UNIT",
		Short: "Print the config of an existing systemd unit",
		Long: "Reads a service unit of systemd with its drop-ins, and prints it as a service of a config file. What has no place there\n" +
			"becomes a comment. Nothing is changed: the commands that take the unit out of service are printed to stderr.",
		Example: "  understudy import redis-server > /etc/understudy/conf.d/redis.yaml\n" +
			"  understudy import postgresql@15-main\n" +
			"  understudy import ./my.service",
		Args: exactArgs(1, "the name of a unit, as nginx, or its file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			unit, err := unitfile.Load("", args[0])
			if err != nil {
				return err
			}
			text, err := unit.YAML()
			if err != nil {
				return err
			}
			if _, err := fmt.Fprint(cmd.OutOrStdout(), text); err != nil {
				return err // before the unit is taken out of service
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "\nNext, on every host, in this order:\n"+
				"  systemctl disable --now %s\n  put this into /etc/understudy/conf.d\n  understudy check\n", printable.Text(unit.Name))
			return nil
		},
	}
}
