package inside

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ErrSettings says that the program might run, but not with its settings: user, limits, directory or the like could not be
// applied. The text names the setting, its value, the reason, and a remedy.
var ErrSettings = errors.New("a setting of the program cannot be applied")

// Settings are further settings of a program.
type Settings struct {
	Credential  *Credential `json:"credential,omitempty"`
	Umask       *uint32     `json:"umask,omitempty"`
	Limits      []Limit     `json:"limits,omitempty"`
	Nice        *int        `json:"nice,omitempty"`        // -20 to 19
	OOMScoreAdj *int        `json:"oomScoreAdj,omitempty"` // -1000 to 1000

	NoNewPrivs   bool          `json:"noNewPrivs,omitempty"` // no setuid program gives rights
	Capabilities *Capabilities `json:"capabilities,omitempty"`
}

// Credential is the user and groups that a program runs as. A supervisor that is not root can only ask for its own.
type Credential struct {
	UID    uint32   `json:"uid"`
	GID    uint32   `json:"gid"`
	Groups []uint32 `json:"groups,omitempty"`
	Name   string   `json:"name,omitempty"` // for messages
}

// Unlimited is the value for no limit.
const Unlimited = math.MaxUint64

// Limit is one of the kernel's resource limits.
type Limit struct {
	Name string `json:"name"` // one of LimitNames
	Soft uint64 `json:"soft"`
	Hard uint64 `json:"hard"`
}

var limits = map[string]int{
	"as": unix.RLIMIT_AS, "core": unix.RLIMIT_CORE, "cpu": unix.RLIMIT_CPU, "data": unix.RLIMIT_DATA,
	"fsize": unix.RLIMIT_FSIZE, "locks": unix.RLIMIT_LOCKS, "memlock": unix.RLIMIT_MEMLOCK,
	"msgqueue": unix.RLIMIT_MSGQUEUE, "nice": unix.RLIMIT_NICE, "nofile": unix.RLIMIT_NOFILE,
	"nproc": unix.RLIMIT_NPROC, "rss": unix.RLIMIT_RSS, "rtprio": unix.RLIMIT_RTPRIO,
	"rttime": unix.RLIMIT_RTTIME, "sigpending": unix.RLIMIT_SIGPENDING, "stack": unix.RLIMIT_STACK,
}

// LimitNames lists all limits.
func LimitNames() []string { return slices.Sorted(maps.Keys(limits)) }

// Check refuses values that no kernel takes, and a directory that is none.
func (prog *Program) Check() error {
	for _, l := range prog.Limits {
		if _, ok := limits[l.Name]; !ok {
			return fmt.Errorf("%w: limits.%s: there is no such limit, only %s", ErrSettings, l.Name, strings.Join(LimitNames(), ", "))
		}
		if l.Soft > l.Hard {
			return fmt.Errorf("%w: limits.%s: %s: the soft limit is above the hard one: swap them", ErrSettings, l.Name, l)
		}
	}
	if prog.Umask != nil && *prog.Umask > 0o777 {
		return fmt.Errorf("%w: umask: %#o: at most 0777 is possible", ErrSettings, *prog.Umask)
	}
	if n := prog.Nice; n != nil && (*n < -20 || *n > 19) {
		return fmt.Errorf("%w: nice: %d: only -20 to 19 is possible", ErrSettings, *n)
	}
	if n := prog.OOMScoreAdj; n != nil && (*n < -1000 || *n > 1000) {
		return fmt.Errorf("%w: oom_score_adj: %d: only -1000 to 1000 is possible", ErrSettings, *n)
	}
	if prog.Dir == "" {
		return nil
	}
	info, err := os.Stat(prog.Dir)
	if err == nil && !info.IsDir() {
		err = unix.ENOTDIR
	}
	if err != nil {
		return fmt.Errorf("%w: working_dir: %w: create it or change working_dir", ErrSettings, err)
	}
	return nil
}

func (l Limit) String() string {
	word := func(n uint64) string {
		if n == Unlimited {
			return "unlimited"
		}
		return strconv.FormatUint(n, 10)
	}
	if l.Soft == l.Hard {
		return word(l.Soft)
	}
	return word(l.Soft) + ":" + word(l.Hard)
}

// step is one step of a copy of this process on its way to the program.
type step struct {
	what, advice string
	calls        []call
}

// steps are in the order that their privileges need, which are gone after the change of the user. The last one becomes the program.
func (prog *Program) steps(o *order) ([]step, error) {
	var all []step
	if n := prog.OOMScoreAdj; n != nil {
		score := strconv.Itoa(*n)
		write := kernel(unix.SYS_WRITE, 0, o.text(score), uintptr(len(score)))
		write.onFile = true
		all = append(all, step{
			fmt.Sprintf("oom_score_adj: %d", *n), "to lower it needs a supervisor with root's rights: run it as root, or raise the value",
			[]call{kernel(unix.SYS_OPENAT, here, o.text("/proc/self/oom_score_adj"), unix.O_WRONLY|unix.O_CLOEXEC), write},
		})
	}
	for _, l := range prog.Limits {
		advice := "the supervisor's own hard limit is lower: raise that one (Limit" + strings.ToUpper(l.Name) +
			"= in its unit), or lower this one"
		if l.Name == "nofile" {
			advice += ", which cannot be above the sysctl fs.nr_open for any user"
		}
		all = append(all, step{fmt.Sprintf("limits.%s: %s", l.Name, l), advice, []call{
			kernel(unix.SYS_PRLIMIT64, 0, uintptr(limits[l.Name]), value(o, unix.Rlimit{Cur: l.Soft, Max: l.Hard})),
		}})
	}
	if n := prog.Nice; n != nil {
		all = append(all, step{
			fmt.Sprintf("nice: %d", *n), "a value below the supervisor's own needs root's rights or limits.nice: " +
				"give it those, or raise the value",
			[]call{kernel(unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, 0, uintptr(*n))},
		})
	}
	if m := prog.Umask; m != nil {
		all = append(all, step{fmt.Sprintf("umask: %#o", *m), "", []call{kernel(unix.SYS_UMASK, uintptr(*m))}})
	}
	// Root stays as it is until the exec: a process that gains rights there loses the death signal.
	caps, changes := prog.Capabilities, prog.Credential != nil && prog.Credential.UID != 0 && !prog.Credential.already()
	if caps != nil {
		all = append(all, caps.before(o, changes)...)
	}
	if prog.Credential != nil {
		all = append(all, prog.Credential.steps(o)...)
	}
	if caps != nil {
		all = append(all, caps.after(o, changes)...)
	}
	if prog.NoNewPrivs { // after all steps that need rights
		all = append(all, step{"no_new_privileges: true", "", []call{prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0)}})
	}
	all = append(all, keepDeathSignal())
	return prog.lastSteps(o, all)
}

const here = ^uintptr(99) // AT_FDCWD

// already reports that there is nothing to change, which needs no rights.
func (c *Credential) already() bool {
	return unix.Geteuid() != 0 && unix.Geteuid() == int(c.UID) && unix.Getegid() == int(c.GID)
}

func (c *Credential) steps(o *order) []step {
	who := fmt.Sprintf("user: %s (uid %d, gid %d)", c.Name, c.UID, c.GID)
	const advice = "only a supervisor that runs as root can change it: run it as root, or leave user: and group: out"
	var groups, group, user []call
	if !c.already() {
		uid, gid := uintptr(c.UID), uintptr(c.GID)
		all := kernel(unix.SYS_SETGROUPS, uintptr(len(c.Groups)))
		if len(c.Groups) > 0 {
			all.args[1] = o.put(unsafe.Slice((*byte)(unsafe.Pointer(&c.Groups[0])), 4*len(c.Groups)))
		}
		groups, group = []call{all}, []call{kernel(unix.SYS_SETRESGID, gid, gid, gid)}
		user = []call{kernel(unix.SYS_SETRESUID, uid, uid, uid)}
	}
	return []step{{who + ": its groups", advice, groups}, {who + ": its group", advice, group}, {who, advice, user}}
}

// keepDeathSignal asks again for the signal, which a change of the user takes away. P4
func keepDeathSignal() step {
	parent := kernel(unix.SYS_GETPPID)
	parent.wants = uintptr(os.Getpid()) // if it died before, no signal would say so
	return step{"the death signal", "", []call{kernel(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL)), parent}}
}

// lastSteps are done as the program's user.
func (prog *Program) lastSteps(o *order, all []step) ([]step, error) {
	for what, texts := range map[string][]string{
		"working_dir " + prog.Dir: {prog.Dir}, "program " + prog.Path: {prog.Path}, "arguments": prog.Argv, "environment": prog.Env,
	} {
		for _, text := range texts {
			if strings.Contains(text, "\x00") {
				return nil, fmt.Errorf("%s: %w", what, unix.EINVAL)
			}
		}
	}
	if prog.Dir != "" {
		all = append(all, step{
			"working_dir: " + prog.Dir, "its user must be able to enter it: change its owner or mode, or working_dir:",
			[]call{kernel(unix.SYS_CHDIR, o.text(prog.Dir))},
		})
	}
	exec := kernel(unix.SYS_EXECVE, o.text(prog.Path), o.texts(prog.Argv), o.texts(prog.Env))
	return append(all, step{"start " + prog.Path, "", []call{exec}}), nil
}
