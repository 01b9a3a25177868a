package cli

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"understudy/supervisor/config"
)

// flagError puts what is wrong with a flag into words.
func flagError(cmd *cobra.Command, err error) error {
	if args := cmd.Flags().Args(); !cmd.HasParent() && len(args) > 0 { // its flags are none of ours
		return subcommand(cmd, args)
	}
	if cmd.HasParent() && cmd.HasAvailableSubCommands() {
		return usage("%s takes a command first: %s", cmd.CommandPath(), strings.TrimSpace(cmd.Example))
	}
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		flag, value := invalid.GetFlag(), invalid.GetValue()
		why := ""
		switch flag.Value.Type() {
		case "duration":
			_, bad := config.ReadDuration(value)
			if bad == nil {
				bad = errors.New("is not a duration such as 10s")
			}
			why = bad.Error()
		case "int", "int64":
			why = `"` + value + `" is not a whole number`
		case "bool":
			if flag.Name == "zk" {
				return usage(noServers)
			}
			why = `"` + value + `" must be true or false`
		}
		if why != "" {
			return usage("--%s: %s (see `%s --help`)", flag.Name, why, cmd.CommandPath())
		}
	}
	return usage("%w%s (see `%s --help`)", err, nearFlag(cmd, err), cmd.CommandPath())
}

// checkValues refuses an empty name or path: it is that of a variable which is not set, and would mean any node, or this one. It also
// refuses a flag that has another one in place of its value, and a flag whose dash was made a long one.
func checkValues(cmd *cobra.Command, args []string) (err error) {
	for _, arg := range args {
		if flag := strings.TrimLeft(arg, "–—"); flag != arg && cmd.Flags().Lookup(flag) != nil {
			return usage("%s begins with a long dash: write --%s", arg, flag)
		}
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		value := f.Value.String()
		name, _, _ := strings.Cut(strings.TrimPrefix(value, "--"), "=")
		switch {
		case slices.Contains([]string{"to", "node", "service", "root", "config"}, f.Name) && value == "":
			err = usage("--%s is empty: give it a value, or leave it out", f.Name)
		case strings.HasPrefix(value, "--") && cmd.Flags().Lookup(name) != nil:
			err = usage("--%s has no value: the next word is %s", f.Name, value)
		}
	})
	return err
}

// keyFlags are the flags that stand for keys of the config, below services.NAME where the key is a service's.
var keyFlags = map[string]string{
	"node": "--node", "zookeeper.servers": "--zk", "zookeeper.root": "--root", "zookeeper.lease": "--lease", "http.listen": "--http",
	"log.level": "--log-level", "log.format": "--log-format", "fencing.agent.listen": "--agent-listen", "fencing.agent": "--agent-secret",
	"fencing.agent.secret_file": "--agent-secret", "grace_delay": "--grace", "stop_signal": "--stop-signal",
	"stop_timeout": "--stop-timeout", "restart.policy": "--restart", "election": "--election", "contain": "--contain",
	"command": "COMMAND", "": "--service",
}

// inFlags names the flags instead of the keys of a config that was made of flags.
func inFlags(err error) error {
	faults, ok := errors.AsType[config.Faults](err)
	if !ok {
		return err
	}
	said := make(config.Faults, len(faults))
	for i, f := range faults {
		key := f.Key
		if rest, ok := strings.CutPrefix(key, "services."); ok {
			_, key, _ = strings.Cut(rest, ".")
		}
		if flag, ok := keyFlags[key]; ok {
			f.Key = flag
		}
		if key == "http.listen" {
			f.Message = strings.ReplaceAll(f.Message, "127.0.0.1:6379 or [::1]:6379", "127.0.0.1:8437")
		}
		said[i] = f
	}
	return said
}
