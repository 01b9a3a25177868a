package child

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"understudy/supervisor/guard"
)

// ErrSettings says that the program might run, but not with its settings: user, limits, directory or the like could not be
// applied. The text names the setting, its value, the reason, and a remedy.
var ErrSettings = errors.New("a setting of the program cannot be applied")

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

// plain reports whether a fork can apply all settings of the program.
func (s Settings) plain() bool {
	return s.Credential == nil && s.Umask == nil && len(s.Limits) == 0 && s.Nice == nil && s.OOMScoreAdj == nil &&
		!s.NoNewPrivs && s.Capabilities == nil
}

// check refuses values that no kernel takes, and a directory that is none.
func (prog *program) check() error {
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

// step is one step of a launcher. The launcher, and the process that explains its failure, use the same list.
type step struct {
	what, advice string
	do           func() unix.Errno
}

// steps are in the order that their privileges need, which are gone after the change of the user. The last one becomes the
// program. Only the first allocates memory when it runs.
func (prog *program) steps() ([]step, error) {
	var all []step
	if n := prog.OOMScoreAdj; n != nil {
		value := []byte(strconv.Itoa(*n))
		all = append(all, step{
			fmt.Sprintf("oom_score_adj: %d", *n), "to lower it needs a supervisor with root's rights: run it as root, or raise the value",
			func() unix.Errno { return errnoOf(os.WriteFile("/proc/self/oom_score_adj", value, 0)) },
		})
	}
	for _, l := range prog.Limits {
		resource, value := uintptr(limits[l.Name]), &unix.Rlimit{Cur: l.Soft, Max: l.Hard}
		advice := "the supervisor's own hard limit is lower: raise that one (Limit" + strings.ToUpper(l.Name) + "= in its unit), or lower this one"
		if l.Name == "nofile" {
			advice += ", which cannot be above the sysctl fs.nr_open for any user"
		}
		all = append(all, step{fmt.Sprintf("limits.%s: %s", l.Name, l), advice, func() unix.Errno {
			_, _, errno := unix.RawSyscall6(unix.SYS_PRLIMIT64, 0, resource, uintptr(unsafe.Pointer(value)), 0, 0, 0)
			return errno
		}})
	}
	if n := prog.Nice; n != nil {
		value := uintptr(*n)
		all = append(all, step{
			fmt.Sprintf("nice: %d", *n), "a value below the supervisor's own needs root's rights or limits.nice: give it those, or raise the value",
			func() unix.Errno {
				_, _, errno := unix.RawSyscall(unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, 0, value)
				return errno
			},
		})
	}
	if m := prog.Umask; m != nil {
		value := uintptr(*m)
		all = append(all, step{fmt.Sprintf("umask: %#o", *m), "", func() unix.Errno {
			_, _, errno := unix.RawSyscall(unix.SYS_UMASK, value, 0, 0)
			return errno
		}})
	}
	// Root stays as it is until the exec: a process that gains rights there loses the death signal.
	caps, changes := prog.Capabilities, prog.Credential != nil && prog.Credential.UID != 0 && !prog.Credential.already()
	if caps != nil {
		all = append(all, caps.before(changes)...)
	}
	if prog.Credential != nil {
		all = append(all, prog.Credential.steps()...)
	}
	if caps != nil {
		all = append(all, caps.after(changes)...)
	}
	if prog.NoNewPrivs {
		all = append(all, noNewPrivs())
	}
	all = append(all, keepDeathSignal())
	return prog.lastSteps(all)
}

// already reports that there is nothing to change, which needs no rights.
func (c *Credential) already() bool {
	return unix.Geteuid() != 0 && unix.Geteuid() == int(c.UID) && unix.Getegid() == int(c.GID)
}

func (c *Credential) steps() []step {
	who := fmt.Sprintf("user: %s (uid %d, gid %d)", c.Name, c.UID, c.GID)
	const advice = "only a supervisor that runs as root can change it: run it as root, or leave user: and group: out"
	uid, gid := int(c.UID), int(c.GID)
	groups := make([]int, len(c.Groups))
	for i, g := range c.Groups {
		groups[i] = int(g)
	}
	already := c.already()
	unless := func(do func() error) func() unix.Errno {
		return func() unix.Errno {
			if already {
				return 0
			}
			return errnoOf(do())
		}
	}
	// Raw calls change only this thread, which becomes the program.
	return []step{
		{who + ": its groups", advice, unless(func() error { return unix.Setgroups(groups) })},
		{who + ": its group", advice, unless(func() error { return unix.Setresgid(gid, gid, gid) })},
		{who, advice, unless(func() error { return unix.Setresuid(uid, uid, uid) })},
	}
}

// keepDeathSignal asks again for the signal, which a change of the user takes away.
func keepDeathSignal() step {
	parent := uintptr(os.Getppid())
	return step{"the death signal", "", func() unix.Errno { // P4
		_, _, errno := unix.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0)
		if errno != 0 {
			return errno
		}
		if now, _, _ := unix.RawSyscall(unix.SYS_GETPPID, 0, 0, 0); now != parent {
			return unix.ESRCH // the parent died before, and no signal would tell us
		}
		return 0
	}}
}

// lastSteps are done as the program's user.
func (prog *program) lastSteps(all []step) ([]step, error) {
	dir, err := unix.BytePtrFromString(prog.Dir)
	if err != nil {
		return nil, fmt.Errorf("working_dir %q: %w", prog.Dir, err)
	}
	if prog.Dir != "" {
		all = append(all, step{"working_dir: " + prog.Dir, "its user must be able to enter it: change its owner or mode, or working_dir:", func() unix.Errno {
			_, _, errno := unix.RawSyscall(unix.SYS_CHDIR, uintptr(unsafe.Pointer(dir)), 0, 0)
			return errno
		}})
	}
	path, err := unix.BytePtrFromString(prog.Path)
	if err != nil {
		return nil, fmt.Errorf("program %q: %w", prog.Path, err)
	}
	argv, err := syscall.SlicePtrFromStrings(prog.Argv)
	if err != nil {
		return nil, fmt.Errorf("arguments: %w", err)
	}
	env, err := syscall.SlicePtrFromStrings(prog.Env)
	if err != nil {
		return nil, fmt.Errorf("environment: %w", err)
	}
	return append(all, step{"start " + prog.Path, "", func() unix.Errno {
		_, _, errno := unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(path)),
			uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&env[0])))
		return errno
	}}), nil
}

func errnoOf(err error) unix.Errno {
	var errno unix.Errno
	if err != nil && !errors.As(err, &errno) {
		return unix.EIO
	}
	return errno
}

// fault explains a launcher's or a stub's message.
func (prog *program) fault(m *guard.Message) error {
	errno := unix.Errno(m.Number)
	steps, _ := prog.steps()
	switch {
	case m.Op != opFailed:
		return errKilledEarly
	case m.Index > 0 && m.Index == len(steps):
		as := ""
		if c := prog.Credential; c != nil {
			as = fmt.Sprintf(" as user %s (uid %d)", c.Name, c.UID)
		}
		return startFault(fmt.Errorf("%s%s: %w", steps[m.Index-1].what, as, errno))
	case m.Index > 0 && m.Index < len(steps):
		s := steps[m.Index-1]
		if s.advice == "" {
			return fmt.Errorf("%w: %s: %w", ErrSettings, s.what, errno)
		}
		return fmt.Errorf("%w: %s: %w: %s", ErrSettings, s.what, errno, s.advice)
	case m.Number > 0:
		return startFault(&reported{m.Why, errno})
	}
	return errors.New(m.Why)
}

// reported is an error of another process.
type reported struct {
	why   string
	errno unix.Errno
}

func (r *reported) Error() string { return r.why }

func (r *reported) Unwrap() error { return r.errno }
