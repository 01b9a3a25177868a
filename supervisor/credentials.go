package supervisor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/keyfile"
	"understudy/supervisor/wait"
)

// credentials are this node's credentials at ZooKeeper, and the file that holds them.
type credentials struct {
	read  func() (*election.Auth, error) // the file, now and then; nil: there are none
	look  chan struct{}                  // holds one when renewOnChange should look at the file
	log   hclog.Logger
	taken func() // called when other credentials are in use
	held  func() // called when why has changed

	mu       sync.Mutex // guards the fields below
	shown    *election.Auth
	withheld string // why the file's are not in use
}

// lookAgain is how long a changed file of credentials may go unnoticed.
const lookAgain = 2 * time.Second

func newCredentials(a *election.Auth, log hclog.Logger, taken, held func()) *credentials {
	c := &credentials{shown: a, look: make(chan struct{}, 1), log: log, taken: taken, held: held}
	if a != nil && a.File != "" {
		c.read = keyfile.Cached(a.Anew, nil)
	}
	return c
}

// renewOnChange sends the credentials in the file to ZooKeeper whenever they
// change during a session. The services do not notice. There must be a file.
func (c *credentials) renewOnChange(ctx context.Context, sess *election.Session, sessions *election.Sessions) {
	for {
		c.renew(ctx, sess, sessions)
		due := time.NewTimer(lookAgain)
		select {
		case <-due.C:
		case <-c.look:
			due.Stop()
		case <-ctx.Done():
			due.Stop()
			return
		}
	}
}

func (c *credentials) renew(ctx context.Context, sess *election.Session, sessions *election.Sessions) {
	now, err := c.read()
	if err != nil || !c.differs(now) {
		c.withhold("")
		return
	}
	switch err := sess.Renew(ctx, now); {
	case err == nil:
		c.showing(now)
		sessions.Show(now)
		c.withhold("")
		c.taken()
		c.log.Info("sending changed credentials to ZooKeeper", "file", now.File, "how_many", len(now.Secrets))
	case errors.Is(err, election.ErrNotOurs), errors.Is(err, election.ErrNoAuth):
		c.withhold(fmt.Sprintf("the changed credentials in %s are not taken up: %v; "+
			"keep the previous line beside the new one and run `understudy check --repair-acl` first", now.File, err))
	}
}

// refused tries the file's credentials, after ZooKeeper has refused to register a session's node.
func (c *credentials) refused(sessions *election.Sessions) {
	if c.read == nil {
		return
	}
	if now, err := c.read(); err == nil && c.differs(now) {
		c.showing(now)
		sessions.Show(now)
		c.log.Warn("ZooKeeper refuses the previous credentials, trying those that are in the file now", "file", now.File)
	}
}

// unshown reports whether the file holds other credentials than those in use, and wakes renewOnChange. Another image of this process would
// use the file's even if they do not fit the znodes.
func (c *credentials) unshown() bool {
	if c.read == nil {
		return false
	}
	now, err := c.read()
	if err != nil || !c.differs(now) {
		return false
	}
	wait.Poke(c.look)
	return true
}

func (c *credentials) differs(now *election.Auth) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.shown.Same(now)
}

func (c *credentials) showing(now *election.Auth) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shown = now
}

// withhold notes, once, why changed credentials are not in use; "": they are.
func (c *credentials) withhold(why string) {
	c.mu.Lock()
	same := c.withheld == why
	c.withheld = why
	c.mu.Unlock()
	if same {
		return
	}
	if why != "" {
		c.log.Error("the previous credentials stay in force", "why", why)
	}
	c.held()
}

// why returns why changed credentials are not in use; "": they are.
func (c *credentials) why() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.withheld
}

// exposure looks for znodes that others can change although this node has credentials.
type exposure struct {
	look    chan struct{}   // holds one when watchZnodes should look
	names   func() []string // of the services
	notes   *notes
	changed func() // called when other znodes are open
	log     hclog.Logger
}

// How often watchZnodes checks whether open znodes are closed by now. A look
// at a large tree takes long, and must not become ZooKeeper's main load.
const (
	exposedAgain = 10 * time.Second
	exposedShare = 20
)

// watchZnodes looks when a session begins, when config or credentials change, and while znodes are open.
func (e *exposure) watchZnodes(ctx context.Context, sess *election.Session) {
	for {
		began := time.Now()
		open := e.lookAt(ctx, sess)
		again := time.NewTimer(max(exposedAgain, exposedShare*time.Since(began)))
		if !open {
			again.Stop()
		}
		select {
		case <-again.C:
		case <-e.look:
			again.Stop()
		case <-ctx.Done():
			again.Stop()
			return
		}
	}
}

// lookAt finds the znodes that others can change, and logs when that changes. A tree that was made without credentials, or by a
// stranger, stays open, even if later znodes in it are not.
func (e *exposure) lookAt(ctx context.Context, sess *election.Session) (open bool) {
	all, err := sess.Exposed(ctx, e.names())
	if err != nil {
		if ctx.Err() == nil {
			e.log.Warn("cannot find out whether others may change the znodes in ZooKeeper", "error", err)
		}
		return true // whether it is open is unknown
	}
	note := election.ExposedNote(all)
	was := e.notes.change(func(f *facts) { f.exposed = note }).exposed
	if note != was {
		e.changed()
	}
	switch {
	case note == was:
	case note != "":
		e.log.Warn("ZooKeeper is open to others", "note", note)
	default:
		e.log.Info("ZooKeeper is not open to others any more")
	}
	return note != ""
}
