package unitfile

import (
	"path/filepath"
	"slices"
	"strings"
)

// Daemon is a program that goes to the background unless it is told not to. Understudy follows the process that it starts, and such
// a program would count as ended with success.
type Daemon struct {
	names      []string
	foreground func(args []string) []string // what has to be there to keep it in the foreground
	stop       string                       // the signal of a clean stop, if that is not TERM
	reload     string
}

var daemons = []Daemon{
	{names: []string{"nginx"}, stop: "QUIT", reload: "HUP", foreground: func(args []string) []string {
		for i, arg := range args {
			if strings.Contains(arg, "daemon on;") {
				args[i] = strings.ReplaceAll(arg, "daemon on;", "daemon off;")
				return args
			}
		}
		return unless(slices.ContainsFunc(args, func(arg string) bool { return strings.Contains(arg, "daemon off") }), args, "-g", "daemon off;")
	}},
	{names: []string{"redis-server", "valkey-server"}, foreground: func(args []string) []string {
		return unless(follows(args, "--daemonize", "no"), args, "--daemonize", "no")
	}},
	{names: []string{"pg_ctlcluster"}, stop: "INT", reload: "HUP", foreground: func(args []string) []string {
		return unless(slices.Contains(args, "--foreground"), args, "--foreground")
	}},
	{names: []string{"memcached", "mosquitto"}, reload: "HUP", foreground: without("-d")}, //nolint:misspell // its name
	{names: []string{"mongod"}, foreground: without("--fork")},
	{names: []string{"haproxy"}, reload: "USR2", foreground: func(args []string) []string {
		args = without("-D")(args)
		return unless(slices.Contains(args, "-db") || slices.Contains(args, "-Ws"), args, "-db")
	}},
	{names: []string{"apache2ctl", "apachectl", "httpd", "apache2"}, stop: "WINCH", reload: "USR1", foreground: func(args []string) []string {
		return unless(slices.Contains(args, "-DFOREGROUND") || follows(args, "-D", "FOREGROUND"), args, "-D", "FOREGROUND")
	}},
	{names: []string{"dnsmasq"}, reload: "HUP", foreground: func(args []string) []string {
		return unless(slices.ContainsFunc(args, func(arg string) bool {
			return slices.Contains([]string{"-k", "--keep-in-foreground", "-d", "--no-daemon"}, arg)
		}), args, "--keep-in-foreground")
	}},
	{names: []string{"sshd"}, reload: "HUP", foreground: func(args []string) []string { return unless(slices.Contains(args, "-D"), args, "-D") }},
	{names: []string{"cron", "named"}, reload: "HUP", foreground: func(args []string) []string {
		return unless(slices.Contains(args, "-f") || slices.Contains(args, "-g"), args, "-f")
	}},
	{names: []string{"keepalived"}, reload: "HUP", foreground: func(args []string) []string {
		return unless(slices.Contains(args, "-n") || slices.Contains(args, "--dont-fork"), args, "--dont-fork")
	}},
}

func unless(there bool, args []string, more ...string) []string {
	if there {
		return args
	}
	return append(args, more...)
}

func follows(args []string, key, value string) bool {
	i := slices.Index(args, key)
	return i >= 0 && i+1 < len(args) && args[i+1] == value
}

func without(flag string) func([]string) []string {
	return func(args []string) []string {
		return slices.DeleteFunc(args, func(arg string) bool { return arg == flag })
	}
}

// known is the daemon that a command starts, if it is one of those known here.
func known(argv []string) (Daemon, bool) {
	if len(argv) == 0 {
		return Daemon{}, false
	}
	name := filepath.Base(argv[0])
	i := slices.IndexFunc(daemons, func(d Daemon) bool { return slices.Contains(d.names, name) })
	if i < 0 {
		return Daemon{}, false
	}
	return daemons[i], true
}

// Foreground is a command with what keeps a known daemon in the foreground; any other command stays as it is.
func Foreground(argv []string) []string {
	argv = slices.Clone(argv)
	if d, ok := known(argv); ok {
		return append(argv[:1:1], d.foreground(argv[1:])...)
	}
	return argv
}
