package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"understudy/supervisor/control"
)

// completing is how long somebody who has pressed the tab key is kept waiting.
const completing = time.Second

// quickly is how long is waited for what is good to know, and not what was asked for.
const quickly = 500 * time.Millisecond

// services offers the cluster's services.
func (f *clusterFlags) services(cmd *cobra.Command, args []string, _ string) (all []cobra.Completion, _ cobra.ShellCompDirective) {
	if len(args) == 0 { // all take one
		for _, v := range f.quickStatus(cmd.Context(), completing).Services {
			all = append(all, v.Service)
		}
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}

// nodes offers the cluster's nodes.
func (f *clusterFlags) nodes(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return f.quickStatus(cmd.Context(), completing).NodeNames(), cobra.ShellCompDirectiveNoFileComp
}

// completeNodes has the value of a flag, which is one of the command's own, completed by nodes.
func (f *clusterFlags) completeNodes(cmd *cobra.Command, flag string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f.nodes); err != nil {
		panic(err) // there is no such flag, or it is set twice
	}
}

// quickStatus is a status that is had within the limit, or an empty one. It waits for nothing else: the client takes a second to close what
// never was open, and ends with this process.
func (f *clusterFlags) quickStatus(ctx context.Context, limit time.Duration, services ...string) control.Status {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	got := make(chan control.Status, 1)
	go func() {
		v := visit{clusterFlags: *f, timeout: limit}
		_ = v.visits(ctx, func(ctx context.Context, c *control.Cluster) error {
			s, err := c.Status(ctx, services...)
			if err == nil {
				got <- s
			}
			return err
		})
		close(got)
	}()
	select {
	case s := <-got:
		return s
	case <-ctx.Done():
		return control.Status{}
	}
}

// describeCompletion makes of cobra's command one that is like the others.
func describeCompletion(root *cobra.Command) {
	cmd, _, err := root.Find([]string{"completion"})
	if err != nil || cmd == root {
		panic("cobra has no completion command")
	}
	cmd.Example = "  source <(understudy completion bash)"
	cmd.Args, cmd.RunE = subcommand, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	for _, shell := range cmd.Commands() {
		shell.Example = "  understudy completion " + shell.Name()
	}
}
