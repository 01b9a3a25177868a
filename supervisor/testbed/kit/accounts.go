package kit

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit/tick"
	"understudy/supervisor/testbed/must"
)

// fresh is how old the newest sign of life of a running process can be, on a machine that is very busy.
const fresh = 500 * time.Millisecond

// Accounts is the folder where all processes of one wrapped program, on all hosts, keep their accounts.
type Accounts struct {
	dir   string
	life  string
	child string
}

// Run is one run of the wrapped program: from its first process's start to the last sign of life of its last process.
type Run struct {
	Node  string
	Token int64
	ID    string
	First int64 // CLOCK_MONOTONIC
	Last  int64
	Pid   int            // of the main process, as it sees itself
	Procs map[string]int // how many processes of each kind
}

// NewAccounts makes an empty folder.
func NewAccounts(tb testing.TB, lab *Lab) *Accounts {
	tb.Helper()
	a := &Accounts{dir: memoryDir(tb), child: ChildBinary(tb)}
	if lab != nil {
		a.life = lab.Lifeline()
	}
	tb.Cleanup(func() { // a test that ended early did not come to its own checks
		if tb.Failed() {
			a.CheckOverlap(tb)
		}
	})
	return a
}

// memoryDir makes a folder that is in memory where possible: a disk that writes back must not add to what is measured.
func memoryDir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "understudy-e2e-")
	if err != nil {
		return tb.TempDir()
	}
	tb.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// Child is the command line of a wrapped program that keeps its account here; see testbed/child for the words.
func (a *Accounts) Child(words ...string) []string {
	return append([]string{a.child, "dir=" + a.dir, "life=" + a.life}, words...)
}

// File names a file in the folder.
func (a *Accounts) File(name string) string { return filepath.Join(a.dir, name) }

// Runs returns all runs so far, in the order of their starts.
func (a *Accounts) Runs() []Run {
	files, err := filepath.Glob(filepath.Join(a.dir, "*.tick"))
	if err != nil {
		panic(err) // the pattern is constant
	}
	return ReadRuns(files)
}

// Silence is the longest time that any process here let pass between two signs of life, since it was last asked for.
func (a *Accounts) Silence(tb testing.TB) (longest time.Duration) {
	tb.Helper()
	files, _ := filepath.Glob(filepath.Join(a.dir, "*.tick")) // the pattern is constant
	for _, file := range files {
		d, err := tick.Silence(file)
		must.OK(tb, err)
		longest = max(longest, d)
	}
	return longest
}

// ReadRuns reads accounts, and returns the runs that they belong to, in the order of their starts.
func ReadRuns(files []string) []Run {
	runs := map[string]*Run{}
	for _, file := range files {
		id, err := tick.ParseName(file)
		if err != nil {
			continue
		}
		first, last, ok := tick.Read(file)
		if !ok {
			continue
		}
		r := runs[id.Run]
		if r == nil {
			r = &Run{Node: id.Node, Token: id.Token, ID: id.Run, First: first, Last: last, Procs: map[string]int{}}
			runs[id.Run] = r
		}
		r.First, r.Last = min(r.First, first), max(r.Last, last)
		r.Procs[id.Kind]++
		if id.Kind == "main" {
			r.Pid = id.Pid
		}
	}
	all := make([]Run, 0, len(runs))
	for _, r := range runs {
		all = append(all, *r)
	}
	slices.SortFunc(all, func(a, b Run) int { return cmp.Compare(a.First, b.First) })
	return all
}

// Running returns the runs of which a process showed a sign of life just now, or exists and had no turn for a while.
func (a *Accounts) Running() []Run {
	now := tick.Now()
	return slices.DeleteFunc(a.Runs(), func(r Run) bool { return now-r.Last > int64(fresh) && !a.lives(r) })
}

func (a *Accounts) lives(r Run) bool {
	files, _ := filepath.Glob(filepath.Join(a.dir, "*,"+r.ID+",*.tick")) // no name has what a pattern means otherwise
	return slices.ContainsFunc(files, tick.Lives)
}

// WaitRun waits for a run that fulfils the condition and still runs.
func (a *Accounts) WaitRun(tb testing.TB, limit time.Duration, what string, ok func(Run) bool) Run {
	tb.Helper()
	var found Run
	Until(tb, limit, what, func() bool {
		running := a.Running()
		i := slices.IndexFunc(running, ok)
		if i >= 0 {
			found = running[i]
		}
		return i >= 0
	})
	return found
}

// On waits for a run on the node that began after some moment.
func (a *Accounts) On(tb testing.TB, limit time.Duration, node string, after int64) Run {
	tb.Helper()
	return a.WaitRun(tb, limit, "a child runs on "+node, func(r Run) bool { return r.Node == node && r.First > after })
}

// Next waits for a run, on any node, that began after some moment.
func (a *Accounts) Next(tb testing.TB, limit time.Duration, after int64) Run {
	tb.Helper()
	return a.WaitRun(tb, limit, "a child runs again", func(r Run) bool { return r.First > after })
}

// Processes returns the pids, in the test's own pid namespace, of all living processes that keep their account here.
func (a *Accounts) Processes() []int {
	var pids []int
	stats, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range stats {
		line, err := os.ReadFile(path)
		if err != nil || !bytes.HasPrefix(line, []byte(a.child+"\x00dir="+a.dir+"\x00")) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
