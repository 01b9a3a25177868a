package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"understudy/supervisor"
	"understudy/supervisor/child"
)

// image is what this process may become: the binary that is now where its own was, with the same words and environment.
type image struct {
	argv, environ []string
	place         string // where its binary was found
	lost          error  // or why that is not known
	log           hclog.Logger
	here          promise        // what this process is
	signals       chan os.Signal // what others are told of
	wanted        chan os.Signal // SIGUSR2: somebody asks for it
	asked         chan struct{}  // the supervisor is asked for it
	heeded        chan chan bool // asks whether all signals have been acted upon, and none of them ends this process
	catcher       atomic.Pointer[child.Catcher]
}

func newImage() *image {
	place, err := ownPlace()
	return &image{
		place: place, lost: err, argv: os.Args, environ: os.Environ(), signals: make(chan os.Signal, 4), wanted: make(chan os.Signal, 1), asked: make(chan struct{}),
		heeded: make(chan chan bool),
	}
}

// listen begins to hear signals.
func (i *image) listen() {
	signal.Notify(i.signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	signal.Notify(i.wanted, syscall.SIGUSR2)
}

type imageKey struct{}

// withImage listens from now on, for imageOf.
func withImage(ctx context.Context) context.Context {
	i := newImage()
	i.listen()
	return context.WithValue(ctx, imageKey{}, i)
}

// imageOf is the image that listens since Main, or one that does so from now on.
func imageOf(ctx context.Context) *image {
	if i, ok := ctx.Value(imageKey{}).(*image); ok {
		return i
	}
	return imageOf(withImage(ctx))
}

// hush ends listening.
func (i *image) hush() {
	signal.Stop(i.signals) // what was on its way is in the channel by now
	signal.Stop(i.wanted)
}

// part ends listening for an exec, and tells whether nothing has come that this image has to do first, or is doing. What comes
// later waits until the next image listens, if it is caught. If not, an order to stop is carried out as a crash is: it ends this
// process, and with it what runs. That is better than to lose it: Go lets no signal wait that may end a program.
func (i *image) part(caught bool) bool {
	i.hush()
	if !caught {
		// What is ignored stays so over an exec: the next image reads the config, and a person at a terminal asks again.
		signal.Ignore(syscall.SIGUSR2, syscall.SIGHUP, syscall.SIGINT)
	}
	answer := make(chan bool, 1)
	limit := time.NewTimer(time.Second)
	defer limit.Stop()
	select {
	case i.heeded <- answer:
		return <-answer
	case <-limit.C: // who hears them has ended
		return false
	}
}

// mayGo is the answer of the one who hears the signals, after what has come before, of which so many were orders to stop.
func (i *image) mayGo(asked int) bool { return asked == 0 && len(i.signals) == 0 }

var errSignal = errors.New("a signal has come that is to be acted upon first")

func (i *image) upgrade() supervisor.Upgrade {
	return supervisor.Upgrade{Asked: i.asked, Become: func(legacy []byte) error {
		if i.lost != nil {
			return i.lost
		}
		catcher := i.catch()
		defer i.release(catcher)
		defer i.listen()
		if !i.part(catcher != nil) {
			return errSignal
		}
		return child.Become(i.place, i.argv, i.environ, legacy, catcher)
	}}
}

// startCatcher starts a process that is to catch signals, which takes longer than what it is for.
func (i *image) startCatcher() {
	catcher, err := child.StartCatcher()
	if err != nil {
		i.uncaught(err)
		return
	}
	i.catcher.Store(catcher)
}

// catch has signals caught, if that can be.
func (i *image) catch() *child.Catcher {
	catcher := i.catcher.Swap(nil)
	if catcher == nil {
		i.uncaught(errors.New("there is no catcher: the new binary has no use for one, none could be started, or the upgrade was too long in coming"))
		return nil
	}
	if err := catcher.Catch(); err != nil {
		i.uncaught(errors.Join(err, catcher.Kill()))
		i.release(catcher)
		return nil
	}
	return catcher
}

// release ends a catcher, if there is one, and takes what it has caught.
func (i *image) release(catcher *child.Catcher) {
	if catcher == nil {
		return
	}
	if err := catcher.Release(); err != nil {
		i.log.Warn("end the catcher of signals", "error", err)
	}
}

func (i *image) uncaught(why error) {
	i.log.Debug("signals that come during the exec are not caught", "why", why)
}

// catcherWaits is how long an upgrade that has been asked for may take to come to the exec.
const catcherWaits = 30 * time.Second

// run tries the binary whenever that is wanted, and has the supervisor become it if it is good for that.
func (i *image) run(ctx context.Context) error {
	idle := time.NewTimer(catcherWaits)
	defer idle.Stop()
	defer func() { i.release(i.catcher.Swap(nil)) }()
	for {
		select {
		case <-i.wanted:
		case <-idle.C:
			i.release(i.catcher.Swap(nil))
			continue
		case <-ctx.Done():
			return nil
		}
		var there promise
		err := i.lost
		if err == nil {
			there, err = tryImage(ctx, i.place, "", i.argv[1:], i.environ, nil)
		}
		if err == nil {
			err = there.goesOnWith(i.here)
		}
		if err != nil {
			i.log.Error("this process does not become what is now in place of its binary", "binary", i.place, "why", err)
			continue
		}
		if there.Caught && i.catcher.Load() == nil {
			i.startCatcher()
		}
		idle.Reset(catcherWaits)
		if !i.ask(ctx, idle.C) {
			return nil
		}
		idle.Reset(catcherWaits)
	}
}

// ask has the supervisor become what is there, as soon as it can: it has to have a session. A catcher does not wait for longer than
// idle says; without it, an exec is what it is without a tracer.
func (i *image) ask(ctx context.Context, idle <-chan time.Time) bool {
	for {
		select {
		case i.asked <- struct{}{}:
			return true
		case <-idle:
			i.release(i.catcher.Swap(nil))
		case <-ctx.Done():
			return false
		}
	}
}

// goesOn is the word that asks a binary which handovers it goes on with. No other version takes it for anything else.
const goesOn = "goes-on"

// tryLimit is what a new binary is given to answer.
const tryLimit = 10 * time.Second

// promise is what a binary says of itself.
type promise struct {
	Handovers []int    `json:"handovers"`
	Caught    bool     `json:"caught,omitempty"` // it takes what a catcher of signals has kept for it
	Node      string   `json:"node"`
	Root      string   `json:"root"`
	Servers   []string `json:"servers"`
}

// goesOnWith tells whether a session that this process has would be one of the other's.
func (p promise) goesOnWith(here promise) error {
	for _, c := range []struct{ key, there, here string }{
		{"node", p.Node, here.Node}, {"zookeeper.root", p.Root, here.Root},
		{"zookeeper.servers", strings.Join(p.Servers, ", "), strings.Join(here.Servers, ", ")},
	} {
		if c.there != c.here {
			return fmt.Errorf("%s is %s by now, and was %s when this process began: that takes a restart, which hands the services over", c.key, c.there, c.here)
		}
	}
	return nil
}

// tryImage finds out whether the binary at path would go on with what a supervisor with these words and this environment, in dir,
// hands over: it starts, it knows how, and it takes the config. as is another user whose words these are, if they are not ours.
func tryImage(ctx context.Context, path, dir string, words, environ []string, as *syscall.Credential) (p promise, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, tryLimit, fmt.Errorf("it has not answered within %v", tryLimit))
	defer cancel()
	cmd := exec.CommandContext(ctx, path, append([]string{goesOn}, words...)...)
	cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Credential: as}
	cmd.Env = child.WithoutLegacy(environ)
	cmd.WaitDelay = time.Second
	var said, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &complaint
	err = cmd.Run()
	if ctx.Err() != nil {
		return p, context.Cause(ctx)
	}
	if err != nil {
		return p, fmt.Errorf("it cannot go on: %w: %s", err, strings.TrimSpace(complaint.String()))
	}
	if err := json.Unmarshal(said.Bytes(), &p); err != nil {
		return p, fmt.Errorf("it says nothing that could be understood: %w", err)
	}
	for _, version := range supervisor.Handovers() {
		if slices.Contains(p.Handovers, version) {
			return p, nil
		}
	}
	return p, fmt.Errorf("it goes on with handovers of versions %v, and this is %v", p.Handovers, supervisor.Handovers())
}

// goesOnCommand is what tryImage asks.
func goesOnCommand() *cobra.Command {
	return &cobra.Command{
		Use: goesOn + " run ...", Hidden: true, DisableFlagParsing: true,
		Short: "Tell whether this version goes on with what a running supervisor hands over",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] != "run" {
				return usage("what goes on is `run ...`")
			}
			var p promise
			again := runCommandWith(func(f *runFlags, cmd *cobra.Command, args []string) error {
				c, err := f.config(cmd, args)
				if err == nil {
					p = promise{Handovers: supervisor.Handovers(), Caught: true, Node: c.Node, Root: c.ZooKeeper.Root, Servers: servers(c)}
				}
				return err
			})
			again.SetArgs(args[1:])
			again.SilenceErrors, again.SilenceUsage = true, true
			if err := again.ExecuteContext(cmd.Context()); err != nil {
				return err
			}
			if p.Handovers == nil {
				return errors.New("nothing would be run")
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(p)
		},
	}
}
