package config

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// program checks the keys that a service and a process have in common.
func (v *validator) program(p path, g Program) {
	v.command(p.key("command"), g.Command)
	v.path(p.key("working_dir"), g.WorkingDir)
	v.path(p.key("env_file"), g.EnvFile)
	v.account(p.key("user"), g.User)
	v.account(p.key("group"), g.Group)
	v.env(p.key("env"), g.Env)
	v.inheritEnv(p.key("inherit_env"), g.InheritEnv)
	v.limits(p.key("limits"), g.Limits)
	v.capabilities(p.key("capabilities"), g.Caps)
	v.between(p.key("nice"), g.Nice, -20, 19)
	v.between(p.key("oom_score_adj"), g.OOMScoreAdj, -1000, 1000)
	v.stopSignal(p.key("stop_signal"), syscall.Signal(g.StopSignal))
	v.notNegative(p.key("stop_timeout"), g.StopTimeout)
	v.logFile(p.key("log"), g.Log)
}

// command checks words that are there; none at all is for the caller to judge.
func (v *validator) command(p path, words Command) {
	if len(words) > 0 && strings.TrimSpace(words[0]) == "" {
		v.fault(p, "the program's name is empty")
		return
	}
	for i, word := range words {
		if strings.ContainsRune(word, 0) {
			v.ratio([]path{p.item(i), p}, "an argument must not contain a NUL character")
		}
	}
}

// notEmpty reports a list of words that was written and is empty.
func (v *validator) notEmpty(p path, words Command) {
	if len(words) == 0 && v.given(p) {
		v.fault(p, "is empty: say which program to run, or leave the key out")
	}
	v.command(p, words)
}

func (v *validator) path(p path, name string) {
	if name != "" || v.given(p) {
		v.absolute(p, name)
	}
}

var accountName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@-]*\$?$`)

// account checks a user or group that is named; whether there is one is seen on the machine that needs it.
func (v *validator) account(p path, name string) {
	switch {
	case name == "" && !v.given(p):
	case name == "":
		v.fault(p, "is empty: name one, or leave the key out")
	case !accountName.MatchString(name) || len(name) > 256:
		v.fault(p, "%s is not a name or number: write one of them, such as redis or 105", quoted(name))
	}
}

// reserved is what the supervisor tells a child; a file must not contradict it.
var reserved = []string{"UNDERSTUDY_SERVICE", "UNDERSTUDY_NODE", "UNDERSTUDY_TOKEN"}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (v *validator) env(p path, env map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		at := p.key(name)
		switch {
		case !envName.MatchString(name):
			v.keyFault(at, "not a name for a variable: letters, digits and _ are allowed, and no digit at the start")
		case slices.Contains(reserved, name):
			v.keyFault(at, "is set by the supervisor itself")
		case strings.ContainsRune(env[name], 0):
			v.fault(at, "a value must not contain a NUL character")
		}
	}
}

func (v *validator) limits(p path, given map[string]Limit) {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		at, limit := p.key(name), given[name]
		if _, known := limits[name]; !known {
			v.keyFault(at, "is not a limit"+didYouMeanOr(name, LimitNames(), ": those are "+oneOf(LimitNames())))
			continue
		}
		if limit.Soft > limit.Hard {
			v.ratio([]path{at.key("soft"), at}, "soft %s is more than hard %s", limitText(limit.Soft), limitText(limit.Hard))
		}
	}
}

func limitText(value uint64) string {
	text, _ := limitValue(value).MarshalText()
	return string(text)
}

func (v *validator) between(p path, n *int, least, most int) {
	if n != nil && (*n < least || *n > most) {
		v.fault(p, "%d is not a number from %d to %d", *n, least, most)
	}
}

func (v *validator) stopSignal(p path, signal syscall.Signal) {
	switch signal {
	case syscall.SIGSTOP, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGCONT:
		v.fault(p, "%v freezes or wakes a program and does not end it: write TERM, INT, QUIT or another", Signal(signal))
	default:
		v.signal(p, signal)
	}
}

func (v *validator) reloadSignal(p path, signal syscall.Signal) {
	switch signal {
	case syscall.SIGSTOP, syscall.SIGKILL:
		v.fault(p, "no program can catch %v: write HUP, USR1, USR2 or another", Signal(signal))
	default:
		v.signal(p, signal)
	}
}

func (v *validator) signal(p path, signal syscall.Signal) {
	if signal < 1 || signal > 64 {
		v.fault(p, "%d is not a signal: numbers go from 1 to 64", int(signal))
	}
}

// longest bounds what is waited for: more is a slip, and sums of it would overflow.
const longest = 365 * 24 * time.Hour

func (v *validator) notNegative(p path, d time.Duration) bool {
	switch {
	case d < 0:
		v.fault(p, "must not be negative, as %v is", d)
	case d > longest:
		v.fault(p, "%v is more than a year", d)
	default:
		return true
	}
	return false
}

func (v *validator) positive(p path, d time.Duration) bool {
	if d == 0 {
		v.fault(p, "must be positive, not %v", d)
		return false
	}
	return v.notNegative(p, d)
}

// The bounds of a log file: a smaller one would be put aside at every line, and of more none could be found.
const (
	smallestLog = Size(4 << 10)
	mostLogs    = 1000
)

func (v *validator) logFile(p path, log LogFile) {
	v.path(p.key("file"), log.File)
	if strings.HasSuffix(log.File, "/") {
		v.fault(p.key("file"), "%s is a directory's name", quoted(log.File))
	}
	if log.File == "" && log == (LogFile{}) {
		return
	}
	if log.MaxSize < smallestLog {
		v.fault(p.key("max_size"), "%v is too small: %v at least", log.MaxSize, smallestLog)
	}
	if log.Keep < 0 || log.Keep > mostLogs {
		v.fault(p.key("keep"), "%d is not a number from 0 to %d", log.Keep, mostLogs)
	}
}
