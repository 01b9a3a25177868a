package config

import (
	"slices"
	"strings"
)

// synonyms are the words of other tools for keys and commands, in lower case and without - and _.
var synonyms = map[string]string{
	"after": "processes", "args": "command", "autorestart": "restart", "autostart": "eligible",
	"check": "health", "cmd": "command", "colocation": "processes", "cwd": "working_dir",
	"depends": "processes", "dependson": "processes", "dir": "working_dir", "directory": "working_dir", "enabled": "eligible",
	"entrypoint": "command", "environment": "env", "environmentfile": "env_file", "exec": "command", "execreload": "reload_signal",
	"execstart": "command", "execstartpre": "processes", "failuretimeout": "restart", "healthcheck": "health", "hosts": "nodes",
	"killsignal": "stop_signal", "limitnofile": "limits", "livenessprobe": "health", "mem": "memory", "memlimit": "limits",
	"memorymax": "limits", "migrationthreshold": "restart", "notifymaster": "hooks", "oomscoreadjust": "oom_score_adj", "port": "tcp",
	"program": "command", "readinessprobe": "ready", "resource": "ocf", "restartsec": "restart",
	"retries": "failures", "runas": "user", "sessiontimeout": "lease", "startperiod": "start_delay", "startretries": "restart",
	"startsecs": "ready", "stderr": "log", "stdout": "log", "stdoutlogfile": "log", "stonith": "fencing",
	"stopgraceperiod": "stop_timeout", "stopsignal": "stop_signal", "stopwaitsecs": "stop_timeout", "timeoutstopsec": "stop_timeout",
	"token": "token_file", "ulimits": "limits", "vip": "address", "virtualip": "address", "virtualipaddress": "address",
	"workdir": "working_dir", "workingdirectory": "working_dir", "zk": "zookeeper",

	"connect": "zk", "disabled": "eligible", "format": "json", "host": "node", "hostname": "node", "lines": "number", "name": "service",
	"namespace": "root", "output": "json", "prefix": "root", "server": "zk", "servers": "zk", "target": "to", "zookeeper": "zk",

	"ack": "fence", "activate": "start", "cordon": "drain", "deactivate": "stop", "demote": "switchover", "describe": "status",
	"disable": "stop", "enable": "start", "evacuate": "drain", "evict": "drain", "freeze": "pause", "get": "status", "leader": "status",
	"leave": "drain", "migrate": "switchover", "offline": "drain", "online": "undrain", "rejoin": "undrain", "relocate": "switchover",
	"takeover": "switchover", "thaw": "resume", "uncordon": "undrain", "unfreeze": "resume", "unpause": "resume", "unstop": "start",
	"cluster": "status", "config": "check", "confirm": "fence", "delete": "forget", "failover": "switchover",
	"info": "status", "kill": "stop", "list": "status", "log": "logs", "ls": "status", "maintenance": "pause", "members": "status",
	"move": "switchover", "nodes": "status", "promote": "switchover", "ps": "status", "reinit": "reclone", "remove": "forget",
	"rm": "forget", "show": "status", "standby": "drain", "tail": "logs", "test": "check", "top": "status",
	"upgrade": "reexec", "validate": "check", "watch": "status",
}

// DidYouMean is ` (did you mean "x"?)` for the one of the words that another tool calls so, or the nearest, or nothing when none is near.
func DidYouMean(word string, words []string) string {
	plain := strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(word))
	ours, known := synonyms[plain]
	// A key, command or flag.
	if i := slices.IndexFunc(words, func(w string) bool { return known && strings.TrimPrefix(w, "--") == ours }); i >= 0 {
		return ` (did you mean "` + words[i] + `"?)`
	}
	if key, value, ok := strings.Cut(word, ":"); ok && slices.Contains(words, key) {
		return ` (did you mean "` + key + ": " + value + `", with a space?)`
	}
	best, least := "", min(max(1, len(word)/3)+1, len(word))
	for _, w := range words {
		if d := distance(strings.ToLower(word), strings.ToLower(w)); d < least {
			best, least = w, d
		}
	}
	if best == "" {
		return ""
	}
	return ` (did you mean "` + best + `"?)`
}

// distance is how many insertions, deletions, replacements and swaps of neighbours make b of a.
func distance(a, b string) int {
	const far = 1 << 20
	if len(a) > 64 || len(b) > 64 {
		return far
	}
	var before, above []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, above, row = above, row, make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replace := above[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			row[j] = min(above[j]+1, row[j-1]+1, replace)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}

// oneOf is "a, b or c".
func oneOf(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
