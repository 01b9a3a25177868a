package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"understudy/fencing"
	"understudy/supervisor/control"
	"understudy/supervisor/printable"
	"understudy/supervisor/witness"
)

func fenceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "fence",
		Short:   "Mend a fencing that is stuck",
		Example: "  understudy fence confirm db --node db-1",
		Args:    subcommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(confirmCommand(), killLocalCommand())
	return cmd
}

func confirmCommand() *cobra.Command {
	var v visit
	var node string
	cmd := &cobra.Command{
		Use:   "confirm SERVICE --node NODE",
		Short: "Swear that the child of a node is dead: another one may start",
		Long: "You swear that the child of SERVICE on NODE is dead: you have seen the machine without power, or the process gone.\n" +
			"NODE's breadcrumb is then deleted, and another node may become active at once. If you are wrong, two children run.\n" +
			"`understudy status` shows whether there is a death to confirm. The command refuses while ZooKeeper keeps the session\n" +
			"that started the child, and while a supervisor of that machine is connected and sees the child alive. Afterwards it\n" +
			"prints further doubts, and reasons that keep other nodes from starting.",
		Example: "  understudy fence confirm db --node db-1 --zk zk1,zk2,zk3",
		Args:    exactArgs(1, "one service"),
		RunE: func(cmd *cobra.Command, args []string) error {
			service := args[0]
			if node == "" {
				return usage("the child of which node is dead? say --node NODE")
			}
			return v.visits(cmd.Context(), func(ctx context.Context, c *control.Cluster) error {
				result, err := c.Confirm(ctx, service, node)
				if err != nil {
					return err
				}
				if result.Done {
					fmt.Printf("Confirmed: the child of %s on %s counts as dead, its breadcrumb is deleted.\n", service, node)
					for _, note := range result.Notes {
						fmt.Printf("Note: %s.\n", printable.Text(note))
					}
				} else {
					fmt.Printf("Nothing to confirm: %s.\n", printable.Text(result.Why))
				}
				return nil
			})
		},
	}
	v.register(cmd, "")
	cmd.ValidArgsFunction = v.services
	cmd.Flags().StringVar(&node, "node", "", "the `node` whose child is dead")
	complete(cmd, "node", v.suspects)
	return cmd
}

func killLocalCommand() *cobra.Command {
	var service, target string
	var token int64
	var timeout time.Duration
	var forced bool
	cmd := &cobra.Command{
		Use:   "kill-local --service SERVICE --token TOKEN --target TARGET",
		Short: "Kill a child on this machine (the ssh method runs it)",
		Long: "Kills the child of one activation on this machine, by the identity of its process tree, and prints the result as\n" +
			"JSON. The exit code is 0 only when the death is proved. It needs no ZooKeeper, no config and no running\n" +
			"supervisor, but the rights of the user that the supervisor runs as. TARGET is what the breadcrumb says, as the node\n" +
			"that fences encodes it.\n\n" +
			"This line in authorized_keys restricts a key to this command:\n" +
			"  restrict,command=\"understudy fence kill-local --forced\" ssh-ed25519 AAAA...",
		Example: "  understudy fence kill-local --service db --token 85 --target eyJT...",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if forced {
				if err := original(cmd); err != nil {
					return err
				}
			}
			t, err := fencing.DecodeTarget(target)
			switch {
			case err != nil:
				return usage("--target: %w", err)
			case t.Service != service || t.Token != token || service == "":
				return usage("--target is about token %d of %q", t.Token, t.Service)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			s := witness.KillLocal(ctx, t)
			text, err := json.Marshal(s)
			if err != nil {
				return err
			}
			fmt.Println(string(text))
			if !s.Dead {
				return fmt.Errorf("not proved dead: %s", s.Why)
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&service, "service", "", "whose child")
	flags.Int64Var(&token, "token", 0, "the token of the activation")
	flags.StringVar(&target, "target", "", "the breadcrumb's words about the child, encoded")
	flags.DurationVar(&timeout, "timeout", 5*time.Second, "how long to keep trying")
	flags.BoolVar(&forced, "forced", false, "take the other flags from SSH_ORIGINAL_COMMAND, where sshd puts the client's command")
	return cmd
}

// original takes the flags of the kill-local that was asked for over ssh. Of that command nothing else counts.
func original(cmd *cobra.Command) error {
	words := strings.Fields(os.Getenv("SSH_ORIGINAL_COMMAND"))
	i := slices.Index(words, "kill-local")
	if i < 0 {
		return usage("--forced: SSH_ORIGINAL_COMMAND is not about kill-local")
	}
	if err := cmd.Flags().Parse(words[i+1:]); err != nil {
		return usage("--forced: %w", err)
	}
	return nil
}
