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

// credentials is what ZooKeeper knows this node by, and the file that it is from.
type credentials struct {
	read  func() (*election.Auth, error) // the file, now and then; nil: there are none
	look  chan struct{}                  // holds one when the file is to be looked at
	log   hclog.Logger
	taken func() // called when other credentials are shown
	held  func() // called when why has changed

	mu       sync.Mutex // guards what follows
	shown    *election.Auth
	withheld string // why the file's are not shown
}

// lookAgain is how long a changed file of credentials may go unnoticed.
const lookAgain = 2 * time.Second

func newCredentials(a *election.Auth, log hclog.Logger, taken, held func()) *credentials {
	c := &credentials{shown: a, look: make(chan struct{}, 1), log: log, taken: taken, held: held}
	if a != nil && a.File != "" {
		c.read = keyfile.Keep(a.Anew, nil)
	}
	return c
}

// keep shows ZooKeeper the credentials in the file, whenever they change while a session stands. The services do not notice. There is
// a file.
func (c *credentials) keep(ctx context.Context, sess *election.Session, ensemble *election.Ensemble) {
	for {
		c.renew(ctx, sess, ensemble)
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

func (c *credentials) renew(ctx context.Context, sess *election.Session, ensemble *election.Ensemble) {
	now, err := c.read()
	if err != nil || !c.differs(now) {
		c.withhold("")
		return
	}
	switch err := sess.Renew(ctx, now); {
	case err == nil:
		c.showing(now)
		ensemble.Show(now)
		c.withhold("")
		c.taken()
		c.log.Info("sending changed credentials to ZooKeeper", "file", now.File, "how_many", len(now.Secrets))
	case errors.Is(err, election.ErrNotOurs), errors.Is(err, election.ErrNoAuth):
		c.withhold(fmt.Sprintf("the changed credentials in %s are not taken up: %v; keep the former line beside the new one and run `understudy check --repair-acl` first",
			now.File, err))
	}
}

// refused tries the file's credentials after ZooKeeper has refused to register a session's node.
func (c *credentials) refused(ensemble *election.Ensemble) {
	if c.read == nil {
		return
	}
	if now, err := c.read(); err == nil && c.differs(now) {
		c.showing(now)
		ensemble.Show(now)
		c.log.Warn("ZooKeeper refuses the former credentials, trying those that are in the file now", "file", now.File)
	}
}

// unshown tells whether the file holds other credentials than are shown, and has keep look at them. Another image of this process would
// show them even if they cannot open what is in ZooKeeper.
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

// withhold tells, once, why changed credentials are not shown; "": they are.
func (c *credentials) withhold(why string) {
	c.mu.Lock()
	same := c.withheld == why
	c.withheld = why
	c.mu.Unlock()
	if same {
		return
	}
	if why != "" {
		c.log.Error("the former credentials stay in force", "why", why)
	}
	c.held()
}

// why tells why changed credentials are not shown; "": they are.
func (c *credentials) why() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.withheld
}
