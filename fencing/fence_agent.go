package fencing

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"understudy/supervisor/keyfile"
)

// FenceAgent is the method that runs one of ClusterLabs' fence agents, such as fence_ipmilan or fence_virsh: it switches the
// target's power off, and believes that only when the agent, asked again, says that it is off.
//
// As its documentation says, the agent reads lines of key=value on its stdin: the options, the action, and as plug the
// node's word in Plugs, or the node's name. In Options, the method fills in {node}, {host}, {plug} and the like.
type FenceAgent struct {
	Command []string
	Options map[string]string
	Secrets map[string]string // options whose value is the single line of a file
	Plugs   Plugs
}

// Name is "fence_agent".
func (FenceAgent) Name() string { return "fence_agent" }

// An agent's exit codes for the action status.
const (
	exitOn  = 0
	exitOff = 2
)

// Fence switches the target off, and checks that.
func (f FenceAgent) Fence(ctx context.Context, t Target) error {
	facts, err := f.Plugs.facts(t)
	if err != nil {
		return err
	}
	if t.Node == "" {
		return errors.New("the record of the active node gives no node")
	}
	plug := facts.words["plug"]
	var secrets []string
	options := map[string]string{"plug": plug}
	for key, value := range f.Options {
		if options[key], err = facts.fill(value, chosen, nil); err != nil {
			return fmt.Errorf("option %s: %w", key, err)
		}
	}
	for key, file := range f.Secrets {
		value, err := keyfile.Line(file)
		if err != nil {
			return fmt.Errorf("read a secret: %w", err)
		}
		secrets = append(secrets, value)
		options[key] = value
	}
	if _, output, err := f.act(ctx, "off", options); err != nil {
		return fmt.Errorf("off: %w%s", err, output.mask(secrets...).quoted())
	}
	code, output, err := f.act(ctx, "status", options)
	switch code {
	case exitOff:
		return nil
	case exitOn:
		return fmt.Errorf("it says that %s is still on, after it was switched off", plug)
	}
	return fmt.Errorf("status: %w%s", err, output.mask(secrets...).quoted())
}

// act runs the agent for one action. The exit code is -1 when it did not end by itself.
func (f FenceAgent) act(ctx context.Context, action string, options map[string]string) (code int, output *tail, err error) {
	var b strings.Builder
	fmt.Fprintf(&b, "action=%s\n", action)
	for _, key := range slices.Sorted(maps.Keys(options)) {
		if value := options[key]; strings.ContainsAny(key+value, "\r\n") {
			return -1, &tail{}, fmt.Errorf("option %s has more than one line", strconv.Quote(key))
		}
		fmt.Fprintf(&b, "%s=%s\n", key, options[key])
	}
	output, err = program{argv: f.Command, stdin: b.String()}.run(ctx)
	if err == nil {
		return 0, output, nil
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), output, err
	}
	return -1, output, err
}
