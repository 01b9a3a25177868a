package handoff

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/supervisor/child/reexec"
)

// Image is what this process may become: the binary that is now at its place, with the same arguments and environment.
type Image struct {
	argv, environ []string
	place         string // where its binary was found
	lost          error  // or why that is not known
	log           hclog.Logger
	here          Offer          // what this process is
	Signals       chan os.Signal // but SIGUSR2
	wanted        chan os.Signal // SIGUSR2: somebody asks for it
	Asked         chan struct{}  // the supervisor is asked for it
	Held          func() error   // why the config's files, which the next image reads, must not be loaded now; nil: nothing is ever
	Heeded        chan chan bool // asks whether all signals have been acted upon, and none of them ends this process
}

// NewImage is this process, which hears no signals yet.
func NewImage() *Image {
	place, err := ownPlace()
	return &Image{
		place: place, lost: err, argv: os.Args, environ: os.Environ(), Signals: make(chan os.Signal, 4),
		wanted: make(chan os.Signal, 1), Asked: make(chan struct{}),
		Heeded: make(chan chan bool),
	}
}

// KeepEnviron has what is tried, or becomes of this process, get the environment as it is now.
func (i *Image) KeepEnviron() { i.environ = os.Environ() }

// Begin says what this process is, before Run.
func (i *Image) Begin(here Offer, log hclog.Logger) { i.here, i.log = here, log }

// Listen begins to hear signals.
func (i *Image) Listen() {
	signal.Notify(i.Signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	signal.Notify(i.wanted, syscall.SIGUSR2)
}

// Hush ends listening.
func (i *Image) Hush() {
	signal.Stop(i.Signals) // what was on its way is in the channel by now
	signal.Stop(i.wanted)
}

// part ends listening for an exec, and reports whether no signal keeps this image from it. A later order to stop ends this process as a
// crash does, and its programs with it. That is better than to ignore the order: Go cannot hold back a signal that may end a program.
func (i *Image) part() bool {
	// What is ignored stays so over an exec: the next image reads the config, and a person at a terminal asks again. First, because
	// a SIGHUP after Hush would end this process.
	signal.Ignore(syscall.SIGUSR2, syscall.SIGHUP, syscall.SIGINT)
	i.Hush()
	answer := make(chan bool, 1)
	limit := time.NewTimer(time.Second)
	defer limit.Stop()
	select {
	case i.Heeded <- answer:
		return <-answer
	case <-limit.C: // who hears them has ended
		return false
	}
}

// MayGo tells whether nothing keeps this process from an exec: no order to stop was counted, and no signal is waiting.
func (i *Image) MayGo(asked int) bool { return asked == 0 && len(i.Signals) == 0 }

var errSignal = errors.New("a signal has come that must be handled first")

// Become hands over to what is in place of this process's binary, and returns only if that fails.
func (i *Image) Become(handover []byte) error {
	if i.lost != nil {
		return i.lost
	}
	defer i.Listen()
	if !i.part() {
		return errSignal
	}
	return reexec.Become(i.place, i.argv, i.environ, handover)
}

// Run tries the binary whenever that is wanted, and has the supervisor become it if it is good for that.
func (i *Image) Run(ctx context.Context) error {
	for {
		select {
		case <-i.wanted:
		case <-ctx.Done():
			return nil
		}
		var there Offer
		err := i.lost
		if err == nil {
			there, err = Try(ctx, i.place, "", i.argv[1:], i.environ)
		}
		if err == nil {
			err = there.goesOnWith(i.here)
		}
		if err == nil && i.Held != nil {
			err = i.Held()
		}
		if err != nil {
			i.log.Error("the upgrade is refused: this process does not switch to the new binary", "binary", i.place, "why", err)
			continue
		}
		select {
		case i.Asked <- struct{}{}: // once it has a session
		case <-ctx.Done():
			return nil
		}
	}
}

// ownPlace is where this process's binary was found when it was started. What is there later is what an upgrade goes on as: a link
// stays a link, and a binary that is renamed meanwhile is not followed, as /proc/self/exe would.
func ownPlace() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	named, err := exec.LookPath(os.Args[0])
	if err != nil || !SameFile(named, exe) {
		return exe, nil
	}
	return filepath.Abs(named)
}

// SameFile tells whether two paths lead to one file.
func SameFile(one, other string) bool {
	a, err := os.Stat(one)
	if err != nil {
		return false
	}
	b, err := os.Stat(other)
	return err == nil && os.SameFile(a, b)
}
