package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"understudy/election"
	"understudy/fencing"
	"understudy/fencing/agent"
	"understudy/supervisor"
	"understudy/supervisor/control"
	"understudy/supervisor/printable"
	"understudy/supervisor/witness"
)

func fenceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fence",
		Short: "Resolve a blocked takeover",
		Long: "Resolves a takeover that waits because nothing proves that the program on another node is dead, " +
			"or that processes on this host are.\n" +
			"`understudy status` gives the command that is needed.",
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
	var yes, force, gone bool
	cmd := &cobra.Command{
		Use:   "confirm SERVICE --node NODE",
		Short: "Confirm that a node's program is dead",
		Long: "Confirms that the program of SERVICE on NODE is dead: you have seen the host without power, or no process of it is left.\n" +
			"If it did more than run, such as mount a file system, you have looked at that, too: " +
			"the command asks for it, or takes --effects-gone.\n" +
			"The record of NODE is then deleted, and another node may become active at once. If you are wrong, two copies run.\n" +
			"`understudy status` shows whether there is a death to confirm.\n\n" +
			"On a terminal you type the node's name again, unless you give --yes. The command refuses while ZooKeeper keeps the session\n" +
			"that started the program, and while a supervisor of that host is connected and sees the program alive. " +
			"It asks NODE's agent, " +
			"if the config has the keys for that: the agent kills what is left, and the command refuses if that fails, " +
			"unless you give --force.",
		Example: "  understudy fence confirm db --node db-1 --zk zk1,zk2,zk3",
		Args:    exactArgs(1, "one service"),
		RunE: func(cmd *cobra.Command, args []string) error {
			service := args[0]
			if node == "" {
				return usage("--node is missing: name the node whose program is dead")
			}
			how := control.Confirming{By: operator(), Force: force, EffectsGone: gone, Ask: v.agentOf(service)}
			if !yes && isTerminal(os.Stdin) {
				sworn, err := v.swears(cmd.Context(), service, node)
				if err != nil {
					return err
				}
				how.EffectsGone = gone || sworn
			}
			return v.visits(cmd.Context(), func(ctx context.Context, c *control.Cluster) error {
				result, err := c.Confirm(ctx, service, node, how)
				if err != nil {
					return err
				}
				words := fmt.Sprintf("Nothing to confirm: %s.\n", result.Why)
				if result.Done {
					words = fmt.Sprintf("Confirmed: the program of %s on %s counts as dead, and its record is deleted.\n", service, node)
					for _, note := range result.Notes {
						words += fmt.Sprintf("Note: %s.\n", note)
					}
				}
				return v.tell(struct {
					Service string   `json:"service"`
					Node    string   `json:"node"`
					Done    bool     `json:"done"`
					Why     string   `json:"why,omitempty"`
					Notes   []string `json:"notes,omitempty"`
				}{service, node, result.Done, result.Why, result.Notes}, "%s", words)
			})
		},
	}
	v.register(cmd, "the outcome")
	cmd.ValidArgsFunction = v.services
	cmd.Flags().StringVar(&node, "node", "", "the `node` whose program is dead")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for the node's name on a terminal")
	cmd.Flags().BoolVar(&gone, "effects-gone", false, "what the program did beside its processes, such as a mount, is gone too")
	cmd.Flags().BoolVar(&force, "force", false, "confirm even if the node's agent answers that the program is alive, or without asking it")
	v.completeNodes(cmd, "node")
	return cmd
}

// swears asks the operator for the node's name, once it is known that there is something to confirm. sworn: also for what the record lists
// besides the program.
func (v *visit) swears(ctx context.Context, service, node string) (sworn bool, err error) {
	var look []string
	pending := false
	err = v.visits(ctx, func(ctx context.Context, c *control.Cluster) (err error) {
		look, pending, err = c.Confirmable(ctx, service, node)
		return err
	})
	if err != nil || !pending {
		return false, err
	}
	words := fmt.Sprintf("If the program of %s still runs on %s, two copies will run. ", service, node)
	if len(look) > 0 {
		words += "It did more than run, and that outlives it. Check that\n  " + strings.Join(look, "\n  ") + "\n" +
			"Type the node's name to confirm that, and that the program is dead: "
	} else {
		words += "Type the node's name to confirm that it is dead: "
	}
	err = retyped(ctx, words, node)
	return err == nil, err
}

// retyped asks on the terminal for a node's name.
func retyped(ctx context.Context, question, node string) error {
	fmt.Fprint(stdout, printable.Text(question))
	name, err := typed(ctx, os.Stdin)
	if err == nil && name != node {
		err = fmt.Errorf("%q is not %s: nothing is done", name, node)
	}
	return err
}

// typed is a line from a terminal. It ends with ctx, and leaves to the shell what is typed later.
func typed(ctx context.Context, from *os.File) (string, error) {
	ready := []unix.PollFd{{Fd: int32(from.Fd()), Events: unix.POLLIN}}
	for ctx.Err() == nil {
		if n, err := unix.Poll(ready, int(typedPause.Milliseconds())); n > 0 {
			line, _ := bufio.NewReader(from).ReadString('\n') // its end is no name
			return strings.TrimSpace(line), nil
		} else if err != nil && !errors.Is(err, unix.EINTR) {
			return "", fmt.Errorf("read what is typed: %w", err)
		}
	}
	return "", errInterrupted
}

// typedPause is how long Ctrl-C may take.
const typedPause = 50 * time.Millisecond

// agentPatience is how long a node's agent may take to kill and to answer.
const agentPatience = 3 * time.Second

// agentOf asks the agents of other nodes with the secret of the config; nil: it has none that can be read here.
func (v *visit) agentOf(service string) func(context.Context, election.BreadCrumb, int64) (alive bool, err error) {
	c, err := v.cluster()
	if err != nil || c.Fencing.Agent == nil {
		return nil
	}
	keys := agent.KeysIn(c.Fencing.Agent.SecretFile, func(error) {})
	if _, err := keys.Secrets(); err != nil {
		return nil
	}
	return func(ctx context.Context, b election.BreadCrumb, token int64) (alive bool, err error) {
		ctx, cancel := context.WithTimeout(ctx, min(agentPatience, v.timeout/2))
		defer cancel()
		err = agent.Method{Keys: keys}.Fence(ctx, fencing.Target{
			Service: service, Node: b.Node, Host: b.Host, Machine: b.Machine, Boot: b.Boot, Token: token,
			Address: b.Agent, Session: b.Session, Tree: b.Tree, Survive: b.Survive,
			By: fencing.Claimant{Node: operator(), Token: token + 1}, // as the next activation would
		})
		return errors.Is(err, fencing.ErrAlive), err
	}
}

func killLocalCommand() *cobra.Command {
	var service, target string
	var token int64
	var timeout time.Duration
	var forced bool
	cmd := &cobra.Command{
		Use:   "kill-local --service SERVICE --token TOKEN --target TARGET",
		Short: "Kill a program on this host (the ssh method runs it)",
		Long: "Kills the program of one activation on this host, by the identity of its process tree, and prints the result as\n" +
			"JSON. The exit code is 0 only when the death is proved. It needs no ZooKeeper, no config and no running\n" +
			"supervisor, but the rights of the user that the supervisor runs as. TARGET is the record of the active node, as the node\n" +
			"that fences encodes it.\n\n" +
			"This line in authorized_keys restricts a key to this command:\n" +
			"  restrict,command=\"understudy fence kill-local --forced\" ssh-ed25519 AAAA...",
		Example: "  understudy fence kill-local --service db --token 85 --target eyJT...",
		Args:    exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if forced {
				if err := original(cmd); err != nil {
					return err
				}
			}
			if target == "" {
				return usage("--target is missing (see `%s --help`)", cmd.CommandPath())
			}
			t, err := fencing.DecodeTarget(target)
			switch {
			case err != nil:
				return usage("--target: this is not what a node that fences has encoded")
			case t.Service != service || t.Token != token || service == "":
				return usage("--target is about token %d of %q, not about --token %d of --service %q", t.Token, t.Service, token, service)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			s := witness.KillLocal(ctx, t, supervisor.PendingEffects)
			text, err := json.Marshal(s)
			if err != nil {
				return err
			}
			fmt.Fprintln(stdout, string(text))
			if !s.Dead {
				return fmt.Errorf("not proved dead: %s", s.Why)
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&service, "service", "", "whose program")
	flags.Int64Var(&token, "token", 0, "the token of the activation")
	flags.StringVar(&target, "target", "", "the record's facts about the program, encoded")
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
