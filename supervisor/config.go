package supervisor

import (
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/config"
	"understudy/supervisor/control"
	"understudy/supervisor/host"
	"understudy/supervisor/keyfile"
	"understudy/supervisor/replica"
	"understudy/supervisor/service"
	"understudy/supervisor/unit"
)

// Config is everything that one supervisor runs.
type Config struct {
	Node     string
	Host     string
	File     string // the config file; empty: there is none
	Sum      string // of its content, and of all that it includes
	Version  string
	Servers  []string
	Root     string
	Timeout  time.Duration // of the ZooKeeper session
	Floor    time.Duration // no server ever grants less; 0: unknown
	Auth     *election.Auth
	Agent    *Agent                                  // nil: no other node can ask
	Watchdog *config.Watchdog                        // nil: none is used
	Memory   service.Memory                          // nil: there is none
	Notes    func(service string) unit.Notes         // where is noted how to undo oneshots; nil: in files
	Copies   func(service, dir string) replica.Store // where is kept what a copy has followed; nil: in files
	// Lacks is why this machine could not start a service now; it may hang with a file system. nil: that is never looked at.
	Lacks         func(config.Service) error
	SessionRecord *SessionRecord // nil: nobody closes the session of a supervisor that is killed with its guardians
	Services      []service.Conf
	Warnings      []string      // dangerous settings, a line each, for the status
	Changes       <-chan Change // changes of the config while it runs; nil: none
	Logger        hclog.Logger
	JSONLog       bool                   // the log's lines are JSON, and so are the guardians' last words
	TLS           *keyfile.TLS           // nil: plain
	Dial          election.DialFunc      // nil: TCP
	Machine       host.Machine           // nil: this one
	Observer      Observer               // nil: none
	Pulse         <-chan chan<- struct{} // requests for a sign of life: answered while the supervisor's loops run
	Hurry         <-chan struct{}        // closed when a stop must be quick: children are killed, not asked
	Thread        chan<- func()          // runs functions on the main thread of the process; nil: no hand-over is possible
	Upgrade       Upgrade
	Broken        func(error) // is told of impossible events, besides the log; nil: only the log is
	// Stuck is told once that the goroutine that decides for a service stands still, and where it is. It has to end this process at once, as a
	// crash does. nil: nobody looks.
	Stuck    func(service string, stood time.Duration, stack func() string)
	Handover []byte // the envelope of a previous image of this process; nil: there was none

	// Strangers says that strangers reach the servers, too, and may end any session at any moment: then the loss of a lock does not prove that
	// its holder's lease has ended.
	Strangers bool

	MostInTurn int // as in election.Config
}

// Upgrade lets a supervisor become another image of its process, usually another version; children do not notice.
type Upgrade struct {
	Asked  <-chan struct{}             // nil: it never does
	Become func(handover []byte) error // execs; returns only if that fails
}

// Change is the result of reading the config again.
type Change struct {
	Services []service.Conf
	Sum      string   // of the files
	Fault    string   // why the config is not taken up; then the services stay as they are
	Warnings []string // dangerous settings of the config that was taken up
}

// Observer is told events as they happen, by several goroutines. Its methods must return at once, and must not call the
// supervisor.
type Observer interface {
	service.Observer
	// Lease tells each new end of the lease; a zero LeaseStatus is none.
	Lease(control.LeaseStatus)
	// Gone tells that a service is not in the config any more, and has ended.
	Gone(service string)
	// Faulty tells why a changed config is not taken up; "": it is.
	Faulty(why string)
	// Warned tells which settings are dangerous, a line each.
	Warned(warnings []string)
	// Watchdog tells, once, which device is used and how. armed reports at any time whether it resets this machine unless
	// it is fed; an observer may call no other function of the supervisor.
	Watchdog(device, mode string, armed func() bool)
}

// unobserved is the observer that does nothing.
type unobserved struct{}

func (unobserved) Lease(control.LeaseStatus)            {}
func (unobserved) State(control.LocalStatus)            {}
func (unobserved) Gone(string)                          {}
func (unobserved) Fenced(string, string, time.Duration) {}
func (unobserved) Restarted(string)                     {}
func (unobserved) Claimed(string)                       {}
func (unobserved) Faulty(string)                        {}
func (unobserved) Warned([]string)                      {}
func (unobserved) Watchdog(string, string, func() bool) {}
