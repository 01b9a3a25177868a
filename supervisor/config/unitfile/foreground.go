package unitfile

import (
	"path/filepath"
	"slices"
	"strings"
)

// daemon is a program that goes to the background unless it is told not to. Understudy follows the process that it starts, and such
// a program would count as ended with success.
type daemon struct {
	names  []string
	drop   string   // the flag that sends it to the background
	stays  []string // flags of which each keeps it in the foreground
	add    []string // what is added where none of these is there
	stop   string   // the signal of a clean stop, if that is not TERM
	reload string
}

var daemons = []daemon{
	{names: []string{"nginx"}, stays: []string{"daemon off;"}, add: []string{"-g", "daemon off;"}, stop: "QUIT", reload: "HUP"},
	{names: []string{"redis-server", "valkey-server"}, stays: []string{"--daemonize no"}, add: []string{"--daemonize", "no"}},
	{names: []string{"pg_ctlcluster"}, stays: []string{"--foreground"}, add: []string{"--foreground"}, stop: "INT", reload: "HUP"},
	{names: []string{"memcached", "mosquitto"}, drop: "-d", reload: "HUP"}, //nolint:misspell // its name
	{names: []string{"mongod"}, drop: "--fork"},
	{names: []string{"haproxy"}, drop: "-D", stays: []string{"-db", "-Ws"}, add: []string{"-db"}, reload: "USR2"},
	{
		names: []string{"apache2ctl", "apachectl", "httpd", "apache2"}, stays: []string{"-DFOREGROUND", "-D FOREGROUND"}, add: []string{"-D", "FOREGROUND"},
		stop: "WINCH", reload: "USR1",
	},
	{names: []string{"dnsmasq"}, stays: []string{"-k", "--keep-in-foreground", "-d", "--no-daemon"}, add: []string{"--keep-in-foreground"}, reload: "HUP"},
	{names: []string{"sshd"}, stays: []string{"-D"}, add: []string{"-D"}, reload: "HUP"},
	{names: []string{"cron", "named"}, stays: []string{"-f", "-g"}, add: []string{"-f"}, reload: "HUP"},
	{names: []string{"keepalived"}, stays: []string{"-n", "--dont-fork"}, add: []string{"--dont-fork"}, reload: "HUP"},
}

// known is the daemon that a command starts; nil: none that is known here.
func known(argv []string) *daemon {
	if len(argv) == 0 {
		return nil
	}
	i := slices.IndexFunc(daemons, func(d daemon) bool { return slices.Contains(d.names, filepath.Base(argv[0])) })
	if i < 0 {
		return nil
	}
	return &daemons[i]
}

// Foreground is a command with what keeps a known daemon in the foreground; any other command stays as it is.
func Foreground(argv []string) []string {
	d := known(argv)
	if d == nil {
		return slices.Clone(argv)
	}
	var kept []string
	for _, word := range argv {
		if word != d.drop {
			kept = append(kept, strings.ReplaceAll(word, "daemon on;", "daemon off;")) // nginx's
		}
	}
	line := strings.ReplaceAll(strings.Join(kept, " "), ";", "; ") + " " // nginx takes several directives in one word
	if slices.ContainsFunc(d.stays, func(flag string) bool { return strings.Contains(line, " "+flag+" ") }) {
		return kept
	}
	return append(kept, d.add...)
}
