package config

import (
	"maps"
	"slices"
	"time"
)

// Service is what runs on one node at a time: one process or several, in order, as one unit. A field's `doc` describes
// its key in the JSON schema; `oneof` names a group of keys of which one may be given.
type Service struct {
	// Processes has at least one item. A service written with command: has one, named MainProcess.
	Processes    []Process     `yaml:"processes,omitempty" oneof:"program" doc:"Several programs as one unit, in order: each starts once the one before it is ready, and they stop in reverse. In place of command."`
	Election     Election      `yaml:"election" doc:"race: whoever is first becomes active. queue: candidates take turns in the order they came."`
	Contain      Contain       `yaml:"contain" doc:"How the process tree is held together. auto takes the best that works here; strict is auto without the last resort. One supervisor holds all its services in one way."`
	Priority     int           `yaml:"priority" doc:"Nodes with a higher number are preferred."`
	Failback     bool          `yaml:"failback" doc:"Whether a preferred node that returns takes the service back. Without it, a running service is not disturbed. A node that gives the service up each time waits twice as long before the next time."`
	Eligible     bool          `yaml:"eligible" doc:"Whether this node stands for election at all."`
	Moves        Moves         `yaml:"moves" doc:"A service that moved more often than this stays where it is until an operator resumes it."`
	OnLoss       OnLoss        `yaml:"on_zookeeper_loss" doc:"What follows when ZooKeeper acknowledges nothing until the lease ends. stop: the programs are stopped. failsafe: they go on for as long as every other member, asked through its agent, sees no ZooKeeper either and promises to start nothing. Needs fencing.agent, on all nodes; taken up at the next activation."`
	GraceDelay   time.Duration `yaml:"grace_delay" doc:"How long a former active that cannot be asked is waited for."`
	ReloadSignal Signal        `yaml:"reload_signal" doc:"What 'understudy reload' sends to each process of the service."`
	Restart      Restart       `yaml:"restart" doc:"What follows when a process ends by itself."`
	Health       Health        `yaml:"health,omitempty" doc:"A check of the running service. A service that fails it is restarted here, and after restart.give_up_after failures given to another node."`
	Precheck     Precheck      `yaml:"precheck,omitempty" doc:"A check on a node that stands by. While it fails, the node does not stand for election."`
	Hooks        Hooks         `yaml:"hooks,omitempty" doc:"Commands that are run when the service's state changes on this node."`
	Fencing      Fencing       `yaml:"fencing" doc:"How an old active node is made sure to be dead when nothing proves it."`
}

// MainProcess is the name of the only process of a service that is written with command:.
const MainProcess = "main"

// Program is a command and the world it runs in: the keys that a service and a process have in common. What a service
// with processes: gives of them holds for each of its processes, but for command, ready and log.file.
type Program struct {
	Command     Command           `yaml:"command,flow,omitempty" oneof:"program" doc:"The program and its arguments: a list, or one string that is split as a shell would split words. No shell runs it."`
	WorkingDir  string            `yaml:"working_dir,omitempty" doc:"The directory it starts in, an absolute path. Default: the supervisor's own; with user, the root directory."`
	User        string            `yaml:"user,omitempty" doc:"Whom it runs as, a name or a number, with that user's supplementary groups. Default: the supervisor's own."`
	Group       string            `yaml:"group,omitempty" doc:"Its group, a name or a number. Default: the user's."`
	Umask       *Umask            `yaml:"umask,omitempty" doc:"Which permissions new files do not get, in octal. Default: the supervisor's own."`
	Env         map[string]string `yaml:"env,omitempty" doc:"Variables of its environment. They win over those of env_file."`
	EnvFile     string            `yaml:"env_file,omitempty" doc:"A file of KEY=VALUE lines, read at each start. An absolute path."`
	InheritEnv  InheritEnv        `yaml:"inherit_env,flow" doc:"What it gets of the supervisor's own environment: true for all, false for nothing, or a list of names. Without all of it, PATH is systemd's default unless it is named or set."`
	Limits      map[string]Limit  `yaml:"limits,omitempty" doc:"Resource limits, each a number, a size such as 50MiB, unlimited, or {soft: ..., hard: ...}. Default: the supervisor's own."`
	Nice        *int              `yaml:"nice,omitempty" doc:"Its scheduling priority, from -20 (first) to 19 (last). Default: the supervisor's own."`
	OOMScoreAdj *int              `yaml:"oom_score_adj,omitempty" doc:"How soon the kernel kills it when memory is short, from -1000 (never) to 1000 (first). Default: the supervisor's own."`
	NoNewPrivs  bool              `yaml:"no_new_privileges" doc:"Whether neither it nor anything that it starts can get rights by running a program: setuid programs such as sudo, and file capabilities, give none."`
	Caps        Capabilities      `yaml:"capabilities,omitempty" doc:"What it may do of what otherwise only root may. Default: the supervisor's own; with user, nothing."`
	StopSignal  Signal            `yaml:"stop_signal" doc:"The signal that asks it to stop."`
	StopTimeout time.Duration     `yaml:"stop_timeout" doc:"How long it may take to stop before its whole tree is killed. The end of the lease may come sooner."`
	Ready       Ready             `yaml:"ready,omitempty" doc:"When it counts as ready. Default: as soon as it has started."`
	Log         LogFile           `yaml:"log,omitempty" doc:"A file that its output goes to. Default: the supervisor's own stdout and stderr."`
}

// Environ is Env in the form that a program is started with, in a steady order.
func (p Program) Environ() []string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(p.Env)) {
		list = append(list, key+"="+p.Env[key])
	}
	return list
}

// Process is one program of a service.
type Process struct {
	Name    string `yaml:"name" doc:"Its name within the service."`
	Program `yaml:",inline"`
	// Oneshot: it counts as ready once it has ended with success; what it did is undone by Undo when the service stops.
	Oneshot bool    `yaml:"oneshot" doc:"It runs to its end, and the next one starts when it ended with success."`
	Undo    Command `yaml:"undo,flow,omitempty" doc:"What undoes a oneshot when the service stops."`
}

// Moves bounds how often a service moves from node to node, over all nodes; Max 0 means that nothing bounds it.
type Moves struct {
	Max    int           `yaml:"max" doc:"How many moves that nobody asked for; 0 for no bound."`
	Within time.Duration `yaml:"within" doc:"In which time."`
}

// Restart says what follows the end of a child. GiveUpAfter failures within Within hand the lock to another node, and
// this one does not stand again for RejoinAfter; 0 failures means that it never gives up.
type Restart struct {
	Policy      RestartPolicy `yaml:"policy" doc:"on-failure: after a failure, here. always: after success too. never: hand over."`
	Delay       time.Duration `yaml:"delay" doc:"How long to wait before the first restart; it doubles with each failure."`
	MaxDelay    time.Duration `yaml:"max_delay" doc:"What the delay grows to."`
	GiveUpAfter int           `yaml:"give_up_after" doc:"After how many failures the service is given to another node; 0 for never."`
	Within      time.Duration `yaml:"within" doc:"The time in which failures are counted."`
	RejoinAfter time.Duration `yaml:"rejoin_after" doc:"How long a node that gave up does not stand for election."`
}

// Hooks are run when the service's state changes on this node. A hook without a command is not there.
type Hooks struct {
	OnActive  Hook `yaml:"on_active,omitempty" doc:"Once the service is ready here. When it fails, the service does not count as active."`
	OnStandby Hook `yaml:"on_standby,omitempty" doc:"When the supervisor starts, and after each term here, beside what follows."`
	OnFence   Hook `yaml:"on_fence,omitempty" doc:"When the former active had to be fenced: what came of it."`
	OnGiveUp  Hook `yaml:"on_give_up,omitempty" doc:"When this node gives the service up after too many failures."`
}

// Hook is a command with a timeout.
type Hook struct {
	Command Command       `yaml:"command,flow" doc:"The program and its arguments."`
	Timeout time.Duration `yaml:"timeout" doc:"How long it may take before it is killed."`
}
