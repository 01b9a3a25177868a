package cli

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"understudy/supervisor/config"
	"understudy/supervisor/control"
)

// completing is how long somebody who has pressed the tab key is kept waiting.
const completing = time.Second

// quickly is how long is waited for what is good to know, and not what was asked for.
const quickly = 500 * time.Millisecond

// candidates is what cobra calls to complete an argument, or the value of a flag.
type candidates = cobra.CompletionFunc

// none keeps shells from offering file names.
func none(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// words offers a few fixed ones.
func words(all ...cobra.Completion) candidates {
	return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return all, cobra.ShellCompDirectiveNoFileComp
	}
}

// services offers the cluster's services, each with what is to be said of it. What cannot be reached offers none.
func (f *clusterFlags) services(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return none(cmd, args, "")
	}
	s := f.quickStatus(cmd.Context(), completing)
	all := make([]cobra.Completion, 0, len(s.Services))
	for _, v := range s.Services {
		about := "no node is active"
		switch {
		case v.Paused:
			about = v.Order
		case v.Active != "":
			about = "active on " + v.Active
		}
		all = append(all, cobra.CompletionWithDesc(v.Service, about))
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}

// members offers the nodes that pass, of the service that is named already, or of all.
func (f *clusterFlags) members(passes func(control.ServiceStatus, control.MemberStatus) bool) candidates {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var all []cobra.Completion
		for _, v := range f.quickStatus(cmd.Context(), completing, args...).Services {
			for _, m := range v.Members {
				about := string(m.Role)
				if len(args) == 0 {
					about = "" // it has a role in each service
				}
				if c := cobra.CompletionWithDesc(m.Node, about); passes(v, m) && !slices.Contains(all, c) {
					all = append(all, c)
				}
			}
		}
		return all, cobra.ShellCompDirectiveNoFileComp
	}
}

// nodes offers the nodes of the cluster that pass.
func (f *clusterFlags) nodes(passes func(control.Status, string) bool) candidates {
	return func(cmd *cobra.Command, args []string, _ string) (all []cobra.Completion, _ cobra.ShellCompDirective) {
		if len(args) > 0 {
			return none(cmd, args, "")
		}
		s := f.quickStatus(cmd.Context(), completing)
		for _, node := range s.NodeNames() {
			if passes(s, node) {
				all = append(all, node)
			}
		}
		return all, cobra.ShellCompDirectiveNoFileComp
	}
}

// forgettable offers the services and nodes that do not live.
func (f *clusterFlags) forgettable(cmd *cobra.Command, args []string, _ string) (all []cobra.Completion, _ cobra.ShellCompDirective) {
	if len(args) > 0 {
		return none(cmd, args, "")
	}
	s := f.quickStatus(cmd.Context(), completing)
	return s.Forgettable(), cobra.ShellCompDirectiveNoFileComp
}

// suspects offers the nodes whose child may be running: those can be confirmed dead.
func (f *clusterFlags) suspects(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var all []cobra.Completion
	for _, v := range f.quickStatus(cmd.Context(), completing, args...).Services {
		if v.Fencing != nil && v.Fencing.Node != "" {
			all = append(all, cobra.CompletionWithDesc(v.Fencing.Node, "its program of "+v.Service+" may be running"))
		}
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}

// quickStatus is a status that is had within the limit, or an empty one.
func (f *clusterFlags) quickStatus(ctx context.Context, limit time.Duration, services ...string) control.Status {
	return briefly(ctx, f, limit, func(ctx context.Context, c *control.Cluster) (control.Status, error) {
		return c.Status(ctx, services...)
	})
}

// briefly asks the cluster for what is good to know, and answers with nothing where that takes longer than the limit or fails. It waits
// for nothing else: the client takes a second to close what never was open, and ends with this process.
func briefly[T any](ctx context.Context, f *clusterFlags, limit time.Duration, ask func(context.Context, *control.Cluster) (T, error)) T {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	got := make(chan T, 1)
	go func() {
		v := visit{clusterFlags: *f, timeout: limit}
		_ = v.visits(ctx, func(ctx context.Context, c *control.Cluster) error {
			answer, err := ask(ctx, c)
			if err == nil {
				got <- answer
			}
			return err
		})
		close(got)
	}()
	select {
	case answer := <-got:
		return answer
	case <-ctx.Done():
		var none T
		return none
	}
}

// configured offers the services of the config file.
func (f *logsFlags) configured(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return none(cmd, args, "")
	}
	c, err := f.read()
	if err != nil {
		return none(cmd, args, "")
	}
	return c.ServiceNames(), cobra.ShellCompDirectiveNoFileComp
}

// complete sets how the value of a flag is completed. The flag is one of the command's own.
func complete(cmd *cobra.Command, flag string, f candidates) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // there is no such flag, or it is set twice
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

// completeRun sets what the flags of `run` can be.
func completeRun(cmd *cobra.Command) {
	for flag, all := range map[string][]cobra.Completion{
		"election": {string(config.ElectionRace), string(config.ElectionQueue)}, "restart": {"on-failure", "always", "never"},
		"contain": {"auto", "cgroup", "pidns", "strict"}, "log-level": {"trace", "debug", "info", "warn", "error"},
		"log-format": {"text", "json"}, "stop-signal": {"TERM", "INT", "QUIT", "HUP", "USR1", "USR2", "KILL"},
	} {
		complete(cmd, flag, words(all...))
	}
	for _, flag := range []string{"service", "node", "lease", "wait", "grace", "stop-timeout", "http", "agent-listen"} {
		complete(cmd, flag, none)
	}
}
