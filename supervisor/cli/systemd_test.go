package cli

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"understudy/supervisor"
	"understudy/supervisor/child/runas"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/control"
	"understudy/supervisor/control/web"
	"understudy/supervisor/testbed/must"
)

const patience = 10 * time.Second

// stage has service manager and supervisor, both played by the test.
type stage struct {
	systemd *manager
	conn    *net.UnixConn
	answer  chan bool // whether the supervisor is alive
}

func newStage(t *testing.T, watchdog time.Duration) *stage {
	return stageWith(t, watchdog, time.Millisecond) // for ZooKeeper, which has no part in it
}

func stageWith(t *testing.T, watchdog, joining time.Duration) *stage {
	t.Helper()
	address := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
	must.OK(t, err)
	t.Setenv("NOTIFY_SOCKET", address)
	t.Setenv("WATCHDOG_USEC", strconv.FormatInt(watchdog.Microseconds(), 10))
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	s := &stage{systemd: startedBy(hclog.NewNullLogger()), conn: conn, answer: make(chan bool)}
	s.systemd.patience = joining
	var conf supervisor.Config
	s.systemd.observe(&conf, web.NewBoard(wire.Now))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = s.systemd.run(ctx) }()
	go s.supervise(ctx, conf.Pulse)
	t.Cleanup(func() { cancel(); <-done; conn.Close() })
	return s
}

func (s *stage) supervise(ctx context.Context, pulses <-chan chan<- struct{}) {
	var alive bool
	for {
		if !alive {
			select {
			case alive = <-s.answer:
			case <-ctx.Done():
				return
			}
			continue
		}
		select {
		case alive = <-s.answer:
		case asks := <-pulses:
			asks <- struct{}{}
		case <-ctx.Done():
			return
		}
	}
}

// hear waits for a message that has the line, and returns all of it.
func (s *stage) hear(t *testing.T, line string) string {
	t.Helper()
	_ = s.conn.SetReadDeadline(time.Now().Add(patience))
	buf := make([]byte, 4096)
	for {
		n, err := s.conn.Read(buf)
		if err != nil {
			t.Fatalf("%q was never told: %v", line, err)
		}
		if text := string(buf[:n]); strings.Contains("\n"+text, "\n"+line) {
			return text
		}
	}
}

// hush has the supervisor answer no more, and takes away what was told before. A manager that asks anew has told
// all that it had an answer for.
func (s *stage) hush(t *testing.T) {
	t.Helper()
	s.answer <- false
	for range 2 { // the first question may overtake an answer that was given before
		select {
		case <-s.systemd.pulses:
		case <-time.After(patience):
			t.Fatal("it is not asked any more")
		}
	}
	_ = s.conn.SetReadDeadline(time.Now().Add(time.Millisecond))
	for buf := make([]byte, 4096); ; {
		if _, err := s.conn.Read(buf); err != nil {
			return
		}
	}
}

// silent fails when anything is told within a while.
func (s *stage) silent(t *testing.T, while time.Duration) {
	t.Helper()
	_ = s.conn.SetReadDeadline(time.Now().Add(while))
	buf := make([]byte, 4096)
	if n, err := s.conn.Read(buf); err == nil {
		t.Errorf("told %q", buf[:n])
	}
}

func TestReadyIsToldOnceTheSupervisorIsUp(t *testing.T) {
	s := newStage(t, 0)
	s.systemd.board.State(control.LocalStatus{Service: "db", Role: "standby"})
	s.silent(t, 50*time.Millisecond)
	s.answer <- true
	if text := s.hear(t, "READY=1"); !strings.Contains(text, "\nSTATUS=1 service: 0 active, 1 standby; no session with ZooKeeper") {
		t.Errorf("%q", text)
	}
	for _, name := range runas.ManagersNames {
		if value, there := os.LookupEnv(name); there {
			t.Errorf("children would be told %s=%s", name, value)
		}
	}
}

// What is asked right after a start is answered by ZooKeeper: status would say that there is no standby.
func TestReadyIsToldOnceTheOtherNodesSeeThisOne(t *testing.T) {
	s := stageWith(t, 0, time.Hour)
	s.systemd.board.State(control.LocalStatus{Service: "db", Role: "standby"})
	s.systemd.board.State(control.LocalStatus{Service: "web", Role: "standby"})
	s.answer <- true
	s.systemd.board.Lease(control.LeaseStatus{Session: "0x1"})
	s.systemd.board.Announced("db")
	s.silent(t, 50*time.Millisecond)
	s.systemd.board.Announced("web")
	if text := s.hear(t, "READY=1"); !strings.Contains(text, "\nSTATUS=2 services: 0 active, 2 standby") {
		t.Errorf("%q", text)
	}
}

func TestStatusFollowsTheServices(t *testing.T) {
	s := newStage(t, 0)
	s.answer <- true
	s.hear(t, "READY=1")
	s.systemd.board.Lease(control.LeaseStatus{Session: "0x1"})
	s.hear(t, "STATUS=0 services: 0 active, 0 standby")
	s.systemd.board.State(control.LocalStatus{Service: "db", Role: "active"})
	s.hear(t, "STATUS=1 service: 1 active, 0 standby")
	s.systemd.board.Faulty("u.yaml:1:1: bad")
	s.hear(t, "STATUS=1 service: 1 active, 0 standby; u.yaml:1:1: bad")
	s.systemd.board.Gone("db")
	s.hear(t, "STATUS=0 services: 0 active, 0 standby; u.yaml:1:1: bad")
}

func TestWatchdogIsFedWhileTheSupervisorAnswersAndNoLonger(t *testing.T) {
	s := newStage(t, 60*time.Millisecond)
	s.answer <- true
	for range 5 {
		s.hear(t, "WATCHDOG=1")
	}
	s.hush(t)
	s.silent(t, 200*time.Millisecond)
	s.answer <- true
	s.hear(t, "WATCHDOG=1")
}

func TestReloadIsTold(t *testing.T) {
	s := newStage(t, 0)
	s.answer <- true
	s.hear(t, "READY=1")
	var before, after unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &before)
	s.systemd.hangup()
	text := s.hear(t, "RELOADING=1")
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &after)
	_, number, _ := strings.Cut(text, "MONOTONIC_USEC=")
	if at, err := strconv.ParseInt(number, 10, 64); err != nil || at < before.Nano()/1000 || at > after.Nano()/1000 {
		t.Errorf("%q, not between %d and %d", text, before.Nano()/1000, after.Nano()/1000)
	}
	s.silent(t, 50*time.Millisecond)
	s.systemd.reloaded()
	s.hear(t, "READY=1")
}

func TestStoppingTakesTheTimeThatTheChildrenTake(t *testing.T) {
	s := newStage(t, 60*time.Millisecond)
	s.answer <- true
	s.hear(t, "READY=1")
	s.systemd.stopping()
	s.hear(t, "STOPPING=1")
	s.hear(t, "EXTEND_TIMEOUT_USEC=10000000")
	s.hear(t, "WATCHDOG=1")
	s.hush(t)
	s.silent(t, 200*time.Millisecond)
}

func TestWithoutAServiceManagerNothingIsTold(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	systemd := startedBy(hclog.NewNullLogger())
	if systemd != nil {
		t.Fatal("there is none")
	}
	var conf supervisor.Config
	systemd.observe(&conf, nil)
	systemd.hangup()
	systemd.reloaded()
	systemd.stopping()
	if conf.Observer != nil || conf.Pulse != nil {
		t.Error("the supervisor is observed for nobody")
	}
}

// A config that is refused is told in the status, in one line.
func TestManagerIsToldWhyNothingBegins(t *testing.T) {
	s := newStage(t, 0)
	s.systemd.refused(errors.Join(errors.New("a.yaml:1:1: bad"), errors.New("b.yaml:2:2: worse")))
	s.hear(t, "STATUS=a.yaml:1:1: bad; b.yaml:2:2: worse")
	(*manager)(nil).refused(errors.New("nobody listens"))
}
