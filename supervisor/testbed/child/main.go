// Command child is the wrapped program of the acceptance tests. It keeps an account of its life in dir (see package
// tick), and so does every process it forks. Its arguments are words of the form key=value:
//
//	dir=PATH        where the accounts go
//	to=ADDR         who keeps the accounts, in place of dir, where the files would be another machine's
//	life=PATH       a locked file: when nobody holds its lock any more, the tests are gone and so is every child
//	every=1ms       how often an account is kept up
//	term=exit       on SIGTERM: exit (with 0), ignore, fork (start daemons and stay), or a duration to linger
//	children=N      N children, each with a child of its own
//	daemons=N       N daemons: double-forked, each in a session of its own
//	chains=N        N chains of processes that each start their successor and exit
//	exit=N after=D  end by itself, with code N, after D
//	crash=D         end by itself by SIGKILL, after D
//	env=PATH        write the environment to PATH
//	mutex=PATH      lock this file with all processes of the run, and note in PATH.denied when another run has it
//	answer=ADDR     tell the node's name to everybody who connects
//
// SIGUSR1 makes the main process end by itself, with code 7.
package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"understudy/supervisor/testbed/kit/tick"
)

// What a forked process learns from its parent, beside the arguments.
const (
	runVar  = "TICK_RUN"
	kindVar = "TICK_KIND"
)

// inherited is what every forked process gets beside its standard files.
var inherited []*os.File

func main() {
	began := tick.Now()
	if err := run(began, parse(os.Args[1:])); err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		os.Exit(70)
	}
}

type words map[string]string

func parse(args []string) words {
	w := words{"every": "1ms", "term": "exit"}
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		w[key] = value
	}
	return w
}

func (w words) number(key string) int {
	n, _ := strconv.Atoi(w[key])
	return n
}

func (w words) duration(key string) time.Duration {
	d, _ := time.ParseDuration(w[key])
	return d
}

func run(began int64, w words) error {
	terms := make(chan os.Signal, 1)
	signal.Notify(terms, syscall.SIGTERM)
	failures := make(chan os.Signal, 1)
	signal.Notify(failures, syscall.SIGUSR1)
	token, _ := strconv.ParseInt(os.Getenv("UNDERSTUDY_TOKEN"), 10, 64)
	id := tick.ID{
		Node: os.Getenv("UNDERSTUDY_NODE"), Token: token,
		Run: os.Getenv(runVar), Kind: os.Getenv(kindVar), Pid: os.Getpid(),
	}
	if id.Kind == "" {
		id.Kind, id.Run = "main", fmt.Sprintf("%d.%d", began, id.Pid)
	}
	var err error
	if inherited, err = mutex(id, w["mutex"]); err != nil {
		return err
	}
	if id.Kind == "middle" { // between the two forks of a daemon
		return fork(id.Run, "daemon", true)
	}
	name := id.Name()
	if strings.HasPrefix(id.Kind, "chain") {
		id.Pid = 0 // one account for the whole chain
		name = id.Name()
	}
	account, err := keep(w, name, began)
	if err != nil {
		return err
	}
	switch {
	case strings.HasPrefix(id.Kind, "chain"):
		if abandoned(w["life"]) {
			return nil
		}
		return fork(id.Run, id.Kind, true)
	case id.Kind == "child":
		if err := fork(id.Run, "grandchild", false); err != nil {
			return err
		}
	case id.Kind == "main":
		if err := family(id.Run, w); err != nil {
			return err
		}
		if err := answer(w["answer"], id.Node); err != nil {
			return err
		}
		if err := ready(w["notify"]); err != nil {
			return err
		}
	}
	return live(id, account, w, terms, failures)
}

// family starts all that the main process is told to have.
func family(run string, w words) error {
	if path := w["env"]; path != "" {
		if err := os.WriteFile(path, []byte(strings.Join(os.Environ(), "\n")), 0o644); err != nil {
			return err
		}
	}
	for range w.number("children") {
		if err := fork(run, "child", false); err != nil {
			return err
		}
	}
	for range w.number("daemons") {
		if err := fork(run, "middle", true); err != nil {
			return err
		}
	}
	for i := range w.number("chains") {
		if err := fork(run, "chain"+strconv.Itoa(i), true); err != nil {
			return err
		}
	}
	return nil
}

// ready says so, as sd_notify(3) does, when it is told to.
func ready(told string) error {
	if told == "" {
		return nil
	}
	conn, err := net.Dial("unixgram", os.Getenv("NOTIFY_SOCKET"))
	if err == nil {
		_, err = conn.Write([]byte("READY=1"))
		conn.Close()
	}
	return err
}

func fork(run, kind string, session bool) error {
	cmd := exec.Command(os.Args[0], os.Args[1:]...)
	cmd.Env = append(os.Environ(), runVar+"="+run, kindVar+"="+kind)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: session}
	cmd.ExtraFiles = inherited
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("fork %s: %w", kind, err)
	}
	if kind == "middle" {
		return cmd.Wait()
	}
	return nil
}

// live keeps the account up until an end comes.
func live(id tick.ID, account life, w words, terms, failures <-chan os.Signal) error {
	beat := time.NewTicker(w.duration("every"))
	lifeline := time.NewTicker(500 * time.Millisecond)
	var end, crash, lingered <-chan time.Time
	if _, ok := w["exit"]; ok && id.Kind == "main" {
		end = time.After(w.duration("after"))
	}
	if _, ok := w["crash"]; ok && id.Kind == "main" {
		crash = time.After(w.duration("crash"))
	}
	for {
		select {
		case <-beat.C:
			account.Beat()
		case <-lifeline.C:
			if abandoned(w["life"]) {
				return nil
			}
		case <-terms:
			switch w["term"] {
			case "exit":
				os.Exit(0)
			case "ignore":
			case "fork":
				for range 10 {
					if err := fork(id.Run, "middle", true); err != nil {
						return err
					}
				}
			default:
				lingered = time.After(w.duration("term"))
			}
		case <-failures:
			os.Exit(7)
		case <-lingered:
			os.Exit(0)
		case <-end:
			os.Exit(w.number("exit"))
		case <-crash:
			return syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
		}
	}
}

// abandoned tells that the tests which started us have ended without killing us.
func abandoned(path string) bool {
	if path == "" {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return true
	}
	defer f.Close()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil
}
