package cli

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"understudy/supervisor"
	"understudy/supervisor/child/runas"
	"understudy/supervisor/control/web"
	"understudy/supervisor/wait"
)

// manager is the service manager that started this supervisor, as sd_notify(3) tells of it. A nil one is none.
type manager struct {
	address  string
	watchdog time.Duration // how long it waits for a sign of life; 0: for ever
	log      hclog.Logger
	board    *web.Board           // set by observe
	pulses   chan chan<- struct{} // asks the supervisor for a sign of life
	hangups  chan struct{}        // a reload was asked for
	reloads  chan struct{}        // and is over
	asked    chan struct{}        // closed when the supervisor was asked to stop
	patience time.Duration        // how long ZooKeeper may take before it is told that we are ready
}

// How often the manager is told to go on waiting for the end, and for how long each time.
const (
	extendEvery = 2 * time.Second
	extension   = 10 * time.Second
)

// joining is how long the manager waits for ZooKeeper: not for ever, as it may be down while the host boots.
const joining = 5 * time.Second

// startedBy finds the service manager, and takes its variables out of the environment: they are not for the children.
func startedBy(log hclog.Logger) *manager {
	address := os.Getenv("NOTIFY_SOCKET")
	usec, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	if pid := os.Getenv("WATCHDOG_PID"); err != nil || usec < 0 || pid != "" && pid != strconv.Itoa(os.Getpid()) {
		usec = 0
	}
	for _, name := range runas.ManagersNames {
		_ = os.Unsetenv(name)
	}
	if !strings.HasPrefix(address, "/") && !strings.HasPrefix(address, "@") {
		return nil
	}
	return &manager{
		address: address, watchdog: time.Duration(usec) * time.Microsecond, log: log,
		pulses: make(chan chan<- struct{}), hangups: make(chan struct{}, 1), reloads: make(chan struct{}, 1),
		asked: make(chan struct{}), patience: joining,
	}
}

// observe has the manager know how the supervisor is, which writes it on the board.
func (m *manager) observe(conf *supervisor.Config, board *web.Board) {
	if m != nil {
		conf.Pulse, m.board = m.pulses, board
	}
}

// line is how the supervisor is, and changed when it may be otherwise.
func (m *manager) line() (line string, changed <-chan struct{}) {
	l, changed := m.board.Local()
	return tally(l), changed
}

// tell sends one message. It does not wait for a manager that does not read.
func (m *manager) tell(lines ...string) {
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: m.address, Net: "unixgram"})
	if err == nil {
		defer conn.Close()
		_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
		_, err = conn.Write([]byte(strings.Join(lines, "\n")))
	}
	if err != nil {
		m.log.Warn("cannot notify the service manager", "what", lines[0], "error", err)
	}
}

// hangup says that the config is about to be read anew, and reloaded that it has been.
func (m *manager) hangup() {
	if m != nil {
		wait.Poke(m.hangups)
	}
}

func (m *manager) reloaded() {
	if m != nil {
		wait.Poke(m.reloads)
	}
}

// stopping says that the supervisor was asked to stop. It may be said once.
func (m *manager) stopping() {
	if m != nil {
		close(m.asked)
	}
}

// refused says why the supervisor does not even begin: `systemctl status` shows that when the log has gone by.
func (m *manager) refused(err error) {
	if m != nil {
		m.tell("STATUS=" + strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; "))
	}
}

// run tells the manager how things are, until ctx ends.
func (m *manager) run(ctx context.Context) error {
	tick := extendEvery
	if m.watchdog > 0 {
		tick = min(tick, m.watchdog/3)
	}
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	alive := make(chan struct{}, 1)
	pulses, asked := m.pulses, m.asked // nil while there is an answer to wait for; nil once it is known
	said := ""
	var changed <-chan struct{} // nil until it is told that we are ready
	var joined <-chan struct{}  // nil unless we are up, and the other nodes may not see that yet
	var late <-chan time.Time
	ready := func() {
		joined, late = nil, nil
		said, changed = m.line()
		m.tell("READY=1", "STATUS="+said, "WATCHDOG=1")
	}
	join := func() {
		is, changes := m.board.Joined()
		joined = changes
		if is {
			ready()
		}
	}
	for {
		select {
		case pulses <- alive:
			pulses = nil
		case <-alive:
			switch {
			case changed == nil && late == nil:
				late = time.After(m.patience)
				join()
			case asked == nil: // the children may take their time, but not the supervisor
				m.tell("WATCHDOG=1", "EXTEND_TIMEOUT_USEC="+strconv.FormatInt(extension.Microseconds(), 10))
			case m.watchdog > 0:
				m.tell("WATCHDOG=1")
			}
		case <-joined:
			join()
		case <-late:
			ready()
		case <-ticker.C:
			pulses = m.pulses
		case <-changed:
			var now string
			if now, changed = m.line(); now != said {
				said = now
				m.tell("STATUS=" + said)
			}
		case <-m.hangups:
			m.tell("RELOADING=1", "MONOTONIC_USEC="+monotonic())
		case <-m.reloads:
			m.tell("READY=1")
		case <-asked:
			asked, pulses = nil, m.pulses
			now, _ := m.line()
			m.tell("STOPPING=1", "STATUS=stopping: "+now)
		case <-ctx.Done():
			return nil
		}
	}
}

// monotonic is CLOCK_MONOTONIC in microseconds, by which the manager tells this reload from an earlier one.
func monotonic() string {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return "0"
	}
	return fmt.Sprint(now.Nano() / 1000)
}
