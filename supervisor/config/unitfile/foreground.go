package unitfile

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// daemon is a program that goes to the background unless it is told not to, or that a script starts which does not become it. Understudy
// follows the process that it starts, and sends its signals to that one.
type daemon struct {
	names   []string
	drop    string                       // the flag that sends it to the background
	set     [2]string                    // an option that sends it there with another value
	stays   []string                     // flags of which each keeps it in the foreground
	add     []string                     // what is added where none of these is there
	becomes func(argv []string) []string // the command of the program itself, in place of a script's; nil: not known
	stop    string                       // the signal of a clean stop, if that is not TERM
	reload  string
	check   []string // what a reload has to pass first, where the program would end with a broken file
	user    string   // whom the script runs it as
	env     string   // what the script sets, KEY=VALUE
	notify  bool     // it tells systemd when it is ready, and its script does not
	listens bool     // once it listens, it writes its PIDFile=
}

var daemons = []daemon{
	{names: []string{"nginx"}, stays: []string{"daemon off;"}, add: []string{"-g", "daemon off;"}, stop: "QUIT",
		reload: "HUP", listens: true},
	{names: []string{"redis-server", "valkey-server"}, set: [2]string{"--daemonize", "no"},
		stays: []string{"--daemonize no"}, add: []string{"--daemonize", "no"}},
	{
		names: []string{"pg_ctlcluster"}, becomes: postgres, stop: "INT", reload: "HUP", user: "postgres", notify: true,
		env: "PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj", // OOMScoreAdjust= is for the first process alone
	},
	{names: []string{"pg_ctl"}, becomes: pgCtl, stop: "INT", reload: "HUP"},
	{names: []string{"mysqld_safe", "mariadbd-safe"}, becomes: withoutSafe},
	{names: []string{"memcached", "mosquitto"}, drop: "-d", reload: "HUP"}, //nolint:misspell // its name
	{names: []string{"mongod"}, drop: "--fork"},
	{names: []string{"haproxy"}, drop: "-D", stays: []string{"-db", "-Ws"}, add: []string{"-db"}, reload: "USR2"},
	{names: []string{"apache2ctl", "apachectl"}, becomes: apache, stop: "WINCH", reload: "USR1", check: debianApache("-t")},
	{names: []string{"httpd", "apache2"}, stays: []string{"-DFOREGROUND", "-D FOREGROUND"}, add: []string{"-D", "FOREGROUND"},
		stop: "WINCH", reload: "USR1"},
	{names: []string{"dnsmasq"}, stays: []string{"-k", "--keep-in-foreground", "-d", "--no-daemon"},
		add: []string{"--keep-in-foreground"}, reload: "HUP"},
	{names: []string{"/usr/share/dnsmasq/systemd-helper"}, becomes: dnsmasq, reload: "HUP"},
	{names: []string{"sshd"}, stays: []string{"-D"}, add: []string{"-D"}, reload: "HUP"},
	{names: []string{"cron", "named"}, stays: []string{"-f", "-g"}, add: []string{"-f"}, reload: "HUP"},
	{names: []string{"keepalived"}, stays: []string{"-n", "--dont-fork"}, add: []string{"--dont-fork"}, reload: "HUP"},
	{names: []string{"varnishncsa"}, drop: "-D", reload: "HUP"},
	{names: []string{"proftpd"}, stays: []string{"-n", "--nodaemon"}, add: []string{"--nodaemon"}, reload: "HUP"},
	{names: []string{"nscd"}, stays: []string{"-F", "--foreground", "-d"}, add: []string{"--foreground"}},
	{names: []string{"ngircd"}, stays: []string{"-n", "--nodaemon"}, add: []string{"--nodaemon"}, reload: "HUP"},
	{names: []string{"chronyd"}, stays: []string{"-n", "-d", "-Q", "-q"}, add: []string{"-n"}},
}

// asking are programs that have another one run what they name: none of it is a child of theirs.
var asking = []string{
	"systemctl", "service", "initctl", "rc-service", "invoke-rc.d", "supervisorctl", "sv", "monit", "pm2", "docker",
	"podman", "nerdctl", "docker-compose",
	"systemd-run", "start-stop-daemon", "daemonize", "screen", "tmux", "at", "batch", "virsh", "crm", "pcs",
}

// script reports whether a command is an init script, which is called as the program that it starts.
func script(command []string) bool { return filepath.Base(filepath.Dir(command[0])) == "init.d" }

// Asks reports whether a command has another program run what it names.
func Asks(command []string) bool {
	return len(command) > 1 && (slices.Contains(asking, filepath.Base(command[0])) || script(command))
}

// apache is what Debian's script starts, without the script, which no signal gets through. Another distribution's has no such unit.
func apache(argv []string) []string {
	if slices.ContainsFunc(argv[1:], func(word string) bool {
		return word != "start" && word != "-D" && word != "FOREGROUND" && word != "-DFOREGROUND"
	}) {
		return nil
	}
	return debianApache("-D FOREGROUND")
}

func debianApache(flags string) []string {
	return []string{"sh", "-c", `. /etc/apache2/envvars; mkdir -p "$APACHE_RUN_DIR" "$APACHE_LOCK_DIR"; exec /usr/sbin/apache2 ` + flags}
}

// dnsmasq is what Debian's helper starts, with its settings.
func dnsmasq([]string) []string {
	return []string{"sh", "-c",
		". /usr/share/dnsmasq/init-system-common; exec /usr/sbin/dnsmasq --keep-in-foreground ${DNSMASQ_USER:+-u $DNSMASQ_USER} " +
			"${DNSMASQ_INTERFACES} ${CONFIG_DIR:+-7 $CONFIG_DIR} ${RESOLV_CONF:+-r $RESOLV_CONF} ${DNSMASQ_OPTS}"}
}

// postgres is the server of a cluster that Debian's script starts as root,
// and that it may refuse to start because of a file that a killed one left.
func postgres(argv []string) []string {
	words := slices.DeleteFunc(slices.Clone(argv[1:]), func(word string) bool { return strings.HasPrefix(word, "-") })
	at := cluster.FindStringSubmatch(strings.Join(words, " "))
	if at == nil {
		return nil
	}
	return []string{
		"/usr/lib/postgresql/" + at[1] + "/bin/postgres", "-c", "config_file=/etc/postgresql/" + at[1] + "/" + at[2] + "/postgresql.conf",
	}
}

// pgCtl is the server that pg_ctl starts, if it is told no options for that one.
func pgCtl(argv []string) []string {
	at := slices.Index(argv, "-D")
	if !slices.Contains(argv, "start") || slices.Contains(argv, "-o") || at < 0 || at+1 == len(argv) {
		return nil
	}
	return append([]string{strings.TrimSuffix(argv[0], "pg_ctl") + "postgres"}, argv[at:at+2]...)
}

// withoutSafe is the server that a script starts again when it ends.
func withoutSafe(argv []string) []string {
	return append([]string{strings.NewReplacer("mysqld_safe", "mysqld", "mariadbd-safe", "mariadbd").Replace(argv[0])}, argv[1:]...)
}

var cluster = regexp.MustCompile(`^([0-9.]+)[- ]([^ /]+) start$`)

// known is the daemon that a command starts; nil: none that is known here.
func known(argv []string) *daemon {
	if len(argv) == 0 || script(argv) {
		return nil
	}
	i := slices.IndexFunc(daemons, func(d daemon) bool {
		return slices.Contains(d.names, argv[0]) || slices.Contains(d.names, filepath.Base(argv[0]))
	})
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
	if d.becomes != nil {
		if itself := d.becomes(argv); itself != nil {
			return itself
		}
		return slices.Clone(argv)
	}
	var kept []string
	for i, word := range argv {
		if i > 0 && d.set[0] != "" && argv[i-1] == d.set[0] {
			word = d.set[1]
		}
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

// Leaves reports whether a command is a shell's that ends with what it starts in the background.
func Leaves(argv []string) bool {
	return isShell(argv) && strings.HasSuffix(strings.TrimSpace(argv[2]), "&")
}

func isShell(argv []string) bool {
	return len(argv) > 2 && argv[1] == "-c" && slices.Contains([]string{"sh", "bash", "dash"}, filepath.Base(argv[0]))
}

// Programs are the words of a command that may be the file of its program: of a shell's, all that it is to run.
func Programs(argv []string) []string {
	if isShell(argv) {
		return strings.Fields(argv[2])
	}
	return argv[:1]
}
