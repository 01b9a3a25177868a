package config

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Program is a command and the world it runs in: the keys that a service and a process have in common. What a service
// with processes: gives of them holds for each of its processes, but for command, ready and log.file.
type Program struct {
	Command     Command           `yaml:"command,flow,omitempty" oneof:"program" doc:"The program and its arguments, as a list, or as one string that is split into words. It runs without a shell."`
	WorkingDir  string            `yaml:"working_dir,omitempty" doc:"The directory it starts in. Default: the supervisor's own, or with user /."`
	User        string            `yaml:"user,omitempty" doc:"The user that it runs as, a name or a number, with that user's supplementary groups. Default: the supervisor's own."`
	Group       string            `yaml:"group,omitempty" doc:"Its group, a name or a number. Default: the user's."`
	Umask       *Umask            `yaml:"umask,omitempty" doc:"The permissions that new files do not get, in octal. Default: the supervisor's own."`
	Env         map[string]string `yaml:"env,omitempty" doc:"Variables of its environment. They win over those of env_file."`
	EnvFile     string            `yaml:"env_file,omitempty" doc:"A file of KEY=VALUE lines, read at each start."`
	InheritEnv  InheritEnv        `yaml:"inherit_env,flow" doc:"What it gets of the supervisor's own environment: all, nothing, or a list of names. Unless it is true, PATH is systemd's default if it is neither listed nor set."`
	Limits      map[string]Limit  `yaml:"limits,omitempty" doc:"Resource limits, each a number, a size such as 50MiB, unlimited, or {soft: ..., hard: ...}. Default: the supervisor's own."`
	Nice        *int              `yaml:"nice,omitempty" doc:"Its scheduling priority, from -20 (first) to 19 (last). Default: the supervisor's own."`
	OOMScoreAdj *int              `yaml:"oom_score_adj,omitempty" doc:"How soon the kernel kills it when memory is short, from -1000 (never) to 1000 (first)."`
	NoNewPrivs  bool              `yaml:"no_new_privileges" doc:"If true, neither the program nor its children can gain privileges (by setuid programs such as sudo, or file capabilities)."`
	Caps        Capabilities      `yaml:"capabilities,omitempty" doc:"The program's Linux capabilities. Default: the supervisor's own, or with user none."`
	StopSignal  Signal            `yaml:"stop_signal" doc:"The signal that asks it to stop."`
	StopTimeout time.Duration     `yaml:"stop_timeout" doc:"How long it may take to stop before all of its processes are killed."`
	Ready       Ready             `yaml:"ready,omitempty" doc:"When it counts as ready. Default: as soon as it has started."`
	Log         LogFile           `yaml:"log,omitempty" doc:"A file that its output goes to. Default: the supervisor's own stdout and stderr."`
}

// Process is one program of a service.
type Process struct {
	Name    string `yaml:"name" doc:"Its name within the service."`
	Program `yaml:",inline"`
	// Oneshot: it counts as ready once it has ended with success; what it did is undone by Undo when the service stops.
	Oneshot bool    `yaml:"oneshot" doc:"It runs to its end. The next one starts when it has ended with success."`
	Undo    Command `yaml:"undo,flow,omitempty" doc:"The command that undoes a oneshot when the service stops. It has to succeed also if nothing is to be undone. Until it succeeds, the node keeps the lock."`
	Undone  Command `yaml:"undone,flow,omitempty" doc:"A command that is asked after an undo that failed whether nothing is left: exit code 0, and nothing on stderr, means yes."`
	// NeedsProof is of any process: what it leaves may be beyond this host.
	NeedsProof   bool `yaml:"needs_proof" doc:"After the loss of this host no delay is enough. Another node starts the service only after a fencing method, an agent, a later boot of the host or an operator has proved it dead."`
	SurvivesBoot bool `yaml:"survives_boot" doc:"What it did outlasts a boot of this host, as a role at a storage server does. Until it is undone, no other node starts the service without a proof."`
	// UndoTimeout is for each effect of its own; another node that has no proof waits for all of them.
	UndoTimeout time.Duration `yaml:"undo_timeout,omitempty" doc:"How long undo may take before it is killed, and tried again."`
	// In place of Command; see Members.
	Address *Address `yaml:"address,omitempty" oneof:"program" doc:"In place of a command, an IP address that is set here in the order of the programs, and removed when the service stops. As address of the service."`
	Mount   *Mount   `yaml:"mount,omitempty" oneof:"program" doc:"In place of a command, a file system. needs_proof is true unless you write otherwise."`
	OCF     string   `yaml:"ocf,omitempty" oneof:"program" doc:"In place of a command, an OCF resource agent, as PROVIDER:NAME."`
	Sets    *Address `yaml:"-"` // the address that this program of Members sets
	Keeps   bool     `yaml:"-"` // this program of Members keeps an address
	Member  bool     `yaml:"-"` // it is a program of Members: it says by its exit code whether this host is fit
	// It fails if this host is not fit for what this program of Members watches, within Ready.Timeout for each of its actions.
	Probe  Command           `yaml:"-"`
	Params map[string]string `yaml:"params,omitempty" doc:"The parameters of the OCF resource agent. All users of the host can see them."`
}

// Environ is Env in the form that a program is started with, in a steady order.
func (g Program) Environ() []string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(g.Env)) {
		list = append(list, key+"="+g.Env[key])
	}
	return list
}

// check checks the keys that a service and a process have in common.
func (g Program) check(p place) {
	g.Command.check(p.key("command"))
	checkPath(p.key("working_dir"), g.WorkingDir)
	checkPath(p.key("env_file"), g.EnvFile)
	checkAccount(p.key("user"), g.User)
	checkAccount(p.key("group"), g.Group)
	if g.Umask != nil && *g.Umask&0o700 != 0 {
		p.key("umask").warn("%v takes rights from the program's own user, which may then not read its own files: write 0%02o",
			fmt.Sprintf("%03o", *g.Umask), *g.Umask&0o077)
	}
	checkEnv(p.key("env"), g.Env)
	g.InheritEnv.check(p.key("inherit_env"))
	checkLimits(p.key("limits"), g.Limits)
	g.Caps.check(p.key("capabilities"))
	if g.Nice != nil {
		checkBetween(p.key("nice"), *g.Nice, -20, 19)
	}
	if g.OOMScoreAdj != nil {
		checkBetween(p.key("oom_score_adj"), *g.OOMScoreAdj, -1000, 1000)
	}
	checkStopSignal(p.key("stop_signal"), syscall.Signal(g.StopSignal))
	if timeout := p.key("stop_timeout"); checkNotNegative(timeout, g.StopTimeout) {
		switch {
		case g.StopTimeout == 0:
			timeout.warn("the program is killed at once, and never gets to stop cleanly: write how long that may take, such as 10s")
		case g.StopTimeout > longStop:
			timeout.warn("%v is long: a switchover or a restart of a program that hangs takes as long", g.StopTimeout)
		}
	}
	g.Log.check(p.key("log"))
}

func (process Process) check(p place) {
	switch message := nameFault(process.Name); {
	case process.Name == "" && !p.key("name").given():
		p.key("name").fault("missing: each process has a name of its own")
	case message != "":
		p.key("name").fault("%s", message)
	}
	if process.member() != "" {
		process.checkMember(p)
		return
	}
	if len(process.Command) == 0 && !p.key("address").given() && !p.key("mount").given() && !p.key("ocf").given() {
		p.key("command").fault("missing: say which program to run")
	}
	if p.key("params").given() {
		p.key("params").fault("goes with ocf only")
	}
	process.Program.check(p)
	undo, ready := p.key("undo"), p.key("ready")
	process.Undo.checkGiven(undo)
	if idle := process.Undo.idle(); idle != "" {
		undo.warn("%s undoes nothing: name a command that does, or leave undo out", quoted(idle))
	}
	process.checkUndone(p.key("undone"))
	if len(process.Undone) > 0 && len(process.Undo) == 0 {
		p.key("undone").fault("goes with undo only")
	}
	if process.SurvivesBoot && len(process.Undo) == 0 {
		p.key("survives_boot").fault("goes with undo only: nothing would undo it after the boot")
	}
	process.checkSurvival(p)
	switch timeout := p.key("undo_timeout"); {
	case timeout.given() && len(process.Undo) == 0:
		timeout.fault("goes with undo only")
	case timeout.given():
		checkPositive(timeout, process.UndoTimeout)
	}
	if process.Oneshot && len(process.Undo) == 0 && len(process.Command) > 0 && filepath.Base(process.Command[0]) == "mount" {
		p.key("command").warn("stays mounted here when the service stops or moves: write mount: in place of command, " +
			"or add undo: [umount, DIRECTORY]")
	}
	if !process.Oneshot {
		if len(process.Undo) > 0 {
			undo.and(p.key("oneshot")).fault("goes with oneshot: true only: stop_signal stops a program that keeps running")
		}
		process.Ready.check(ready)
		return
	}
	if way := process.Ready.Way(); way != "" {
		ready.key(way).fault("does not go with oneshot: a oneshot is ready once it has ended; only timeout may be given")
		return
	}
	checkNotNegative(ready.key("timeout"), process.Ready.Timeout)
}

// checkUndone warns of what makes a yes of a command that cannot look, such as `! mountpoint`.
func (process Process) checkUndone(p place) {
	process.Undone.checkGiven(p)
	for _, word := range process.Undone {
		for _, sign := range []string{"!", "||"} {
			if first, _, _ := strings.Cut(strings.TrimSpace(word), " "); first == sign || sign == "||" && strings.Contains(word, sign) {
				p.warn("%q: a command that cannot look fails too, and this makes a yes of it: exit with 0 only for a plain yes, "+
					"with 1 for a plain no", sign)
			}
		}
	}
}

// checkSurvival refuses that a delay is enough for what survives a boot.
func (process Process) checkSurvival(p place) {
	if process.SurvivesBoot && p.key("needs_proof").given() && !process.NeedsProof {
		p.key("survives_boot").and(p.key("needs_proof")).fault("does not go with needs_proof: false: no delay shows that it is undone")
	}
}

// longStop is longer than any program is known to need.
const longStop = time.Hour

// reserved are the variables that the supervisor sets for a child; a file must not set them.
var reserved = []string{
	"UNDERSTUDY_SERVICE", "UNDERSTUDY_NODE", "UNDERSTUDY_TOKEN", "UNDERSTUDY_ROLE", "UNDERSTUDY_ACTIVE_NODE",
	"UNDERSTUDY_ACTIVE_HOST", "UNDERSTUDY_ACTIVE_ADDRESS",
	"UNDERSTUDY_ACTIVE_PORT",
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// envOnly is a variable in a value, with so many letters that a password has it seldom.
var envOnly = regexp.MustCompile(`\$(\{\w*\}?|[A-Z_]{2,})`)

func checkEnv(p place, env map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		at := p.key(name)
		switch {
		case !envName.MatchString(name):
			at.keyFault("not a name for a variable: letters, digits and _ are allowed, and no digit at the start")
		case slices.Contains(reserved, name):
			at.keyFault("is set by the supervisor itself")
		case strings.ContainsRune(env[name], 0):
			at.fault("a value must not contain a NUL character")
		case envOnly.MatchString(env[name]) && !secretName.MatchString(name):
			at.warn("no shell reads this, so %s stays as it is: write the whole value", quoted(envOnly.FindString(env[name])))
		}
	}
}

func checkLimits(p place, given map[string]Limit) {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		at, limit := p.key(name), given[name]
		all := slices.Concat(limits, together)
		switch {
		case !slices.Contains(all, name):
			at.keyFault("is not a limit" + cmp.Or(DidYouMean(name, all), ": those are "+oneOf(all)))
		case name == "cpu" && !limit.Percent && limit.Soft > 0 && limit.Soft <= 64:
			at.warn("ends each process after %d s of processor time: for %d processors write %d%%", limit.Soft, limit.Soft, 100*limit.Soft)
		case name == "cpu" && !limit.Percent && limit.Soft > 0 && limit.Soft < 1000:
			at.warn("ends each process after %d s of processor time: for a share of a processor write %[1]d%%", limit.Soft)
		case limit.Percent && name != "cpu":
			at.fault("cannot be a percentage: only cpu can")
		case slices.Contains(together, name) && limit.Soft != limit.Hard:
			at.fault("is of all processes together, and has one value, not soft and hard")
		case slices.Contains(together, name) && limit.Hard == 0:
			at.fault("must be more than 0")
		case limit.Soft < leastLimits[name]:
			at.warn("no program starts with so little: write %s or more", textOf(limitValue(leastLimits[name])))
		}
		if limit.Soft > limit.Hard {
			at.key("soft").and(at).fault("soft %s is more than hard %s", textOf(limitValue(limit.Soft)), textOf(limitValue(limit.Hard)))
		}
	}
}

func checkStopSignal(p place, signal syscall.Signal) {
	switch signal {
	case syscall.SIGSTOP, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGCONT:
		p.fault("%v freezes or wakes a program and does not end it: write TERM, INT, QUIT or another", Signal(signal))
	case syscall.SIGKILL:
		p.warn("no program can catch KILL, so it never gets to stop cleanly: write TERM, INT or QUIT")
	case syscall.SIGCHLD, syscall.SIGURG:
		p.warn("programs ignore %v unless they ask for it, so each stop takes all of stop_timeout: write TERM, INT or QUIT", Signal(signal))
	}
}

func checkReloadSignal(p place, signal syscall.Signal) {
	switch signal {
	case syscall.SIGSTOP, syscall.SIGKILL:
		p.fault("no program can catch %v: write HUP, USR1, USR2 or another", Signal(signal))
	case syscall.SIGTERM, syscall.SIGINT:
		p.warn("%v ends most programs: write HUP, USR1 or USR2", Signal(signal))
	}
}

// LogFile is where a process's stdout and stderr go; no File means the supervisor's own.
type LogFile struct {
	File    string `yaml:"file,omitempty" doc:"The file."`
	MaxSize Size   `yaml:"max_size" doc:"The size at which the file is rotated, such as 50MiB."`
	Keep    int    `yaml:"keep" doc:"How many rotated files are kept."`
}

// The bounds of log files: a smaller one would be rotated at every line, and nobody would find anything among more.
const (
	smallestLog = Size(4 << 10)
	mostLogs    = 1000
)

// neverFilled finds the specifiers of systemd and of dates, and variables.
var neverFilled = regexp.MustCompile(`%?%[A-Za-z]|\$[A-Za-z_{(]+[A-Za-z_})]*`)

var noLogs = regexp.MustCompile(`^/(boot|dev|etc|proc|sys|usr)/`)

func (log LogFile) check(p place) {
	checkPath(p.key("file"), log.File)
	if strings.HasSuffix(log.File, "/") {
		p.key("file").fault("%s is a directory's name", quoted(log.File))
	}
	if log.File == "" && log == (LogFile{}) {
		return
	}
	if p.given() && log.File == "" {
		p.noEffect("a file", "file:")
	}
	if noLogs.MatchString(log.File) && !strings.HasPrefix(log.File, "/usr/local/") && !strings.HasPrefix(log.File, "/dev/shm/") {
		p.key("file").warn("%s is no place for a log: write a file below /var/log", quoted(log.File))
	}
	if word := neverFilled.FindString(log.File); word != "" && !strings.HasPrefix(word, "%%") {
		p.key("file").warn("nothing is filled in here, so %s stays as it is: write the whole name", quoted(word))
	}
	if log.MaxSize < smallestLog {
		p.key("max_size").fault("%v is too small: %v at least", log.MaxSize, smallestLog)
	}
	checkBetween(p.key("keep"), log.Keep, 0, mostLogs)
}
