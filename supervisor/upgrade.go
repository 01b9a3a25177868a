package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"understudy/election"
	"understudy/supervisor/child"
	"understudy/supervisor/config"
	"understudy/supervisor/failsafe"
	"understudy/supervisor/service"
	"understudy/supervisor/wait"
)

// legacyVersion is that of legacy as a whole. Another one is for what must not be ignored by those who do not know it.
const legacyVersion = 1

// Handovers are the versions of a legacy that this supervisor goes on with.
func Handovers() []int { return []int{legacyVersion} }

// legacy is what one image of a supervisor leaves to the next.
type legacy struct {
	Version  int                       `json:"version"`
	Node     string                    `json:"node"`
	Root     string                    `json:"root"`
	Servers  []string                  `json:"servers"`
	Agent    string                    `json:"agent,omitempty"` // where it listens
	Since    time.Time                 `json:"since"`
	Epoch    uint64                    `json:"epoch"`
	Commands uint64                    `json:"asides"`
	Session  election.Carried          `json:"session"`
	Guard    json.RawMessage           `json:"guard"`
	Births   map[string]election.Birth `json:"births,omitempty"`
	Services []service.Record          `json:"services"`
}

// adopter is a Guard that can be handed over, as child.Guard describes it.
type adopter interface {
	HandOver(ctx context.Context, epoch uint64, trees int, do func(guard json.RawMessage) error) error
	Adopted(tree json.RawMessage) (Tree, bool)
}

// move is an upgrade under way in a session.
type move struct {
	step  moveStep
	since time.Time
	stops []*service.Service // which were told to end
}

type moveStep int

const (
	waiting       moveStep = iota // for what is passing
	endingPassing                 // what does not pass is stopped, as ever
	letting                       // all leave the session, children go on
)

const (
	moveLook   = 10 * time.Millisecond
	passingFor = 10 * time.Second // what is not over by then is stopped
	leavingFor = 2 * time.Second  // children are looked after by nobody then
	busyFor    = time.Second
)

// Why an upgrade has to be asked for again.
var (
	errNotNow  = errors.New("not now")
	errStale   = fmt.Errorf("%w: ZooKeeper has acknowledged nothing for a while", errNotNow)
	errUnshown = fmt.Errorf("%w: changed credentials are not taken up yet", errNotNow)
	errHeld    = fmt.Errorf("%w: what runs goes on by promises, or did a moment ago (failsafe)", errNotNow)
)

// fresh tells whether the lease was extended not long ago: what is left of it has to do for the exec, and for the next image's
// first heartbeat.
func (s *supervisor) fresh(sess *election.Session) bool {
	return sess.Backed()-s.cfg.Machine.Now() > election.LeaseLength(sess.Timeout())/2
}

// advance does what is due of an upgrade, and tells whether nothing runs in the session any more: then it can be handed over.
func (s *supervisor) advance(m *move, stops map[*service.Service]context.CancelCauseFunc) (ready bool, err error) {
	stop := func(which func(*service.Service) bool) (left int) {
		for v, end := range stops {
			if !which(v) {
				continue
			}
			if left++; !slices.Contains(m.stops, v) {
				m.stops = append(m.stops, v)
				end(service.ErrHandover)
			}
		}
		return left
	}
	next := func(step moveStep) { m.step, m.since = step, time.Now() }
	for v := range stops {
		if v.Stance() == service.Stuck { // nobody knows for how long
			return false, fmt.Errorf("%w: the child of %s is not proved dead, or its lock cannot be given back", errNotNow, v.Name())
		}
	}
	if m.step == waiting {
		for v := range stops {
			if v.Stance() == service.Passing && time.Since(m.since) < passingFor {
				return false, nil
			}
		}
		next(endingPassing)
	}
	if m.step == endingPassing {
		if stop(func(v *service.Service) bool { return v.Stance() == service.Passing }) > 0 {
			return false, nil
		}
		next(letting)
	}
	if stop(func(*service.Service) bool { return true }) == 0 {
		return true, nil
	}
	if time.Since(m.since) > leavingFor {
		return false, errNotNow
	}
	return false, nil
}

// moveOn goes on with an upgrade. An error says that there will be none.
func (s *supervisor) moveOn(ctx context.Context, t service.Session, m *move, stops map[*service.Service]context.CancelCauseFunc) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if m.step == waiting && !s.fresh(t.Session) {
		return errStale
	}
	if why := s.withheld(); m.step == waiting && why != "" { // another image would show what is not good for what there is
		return fmt.Errorf("%w: %s", errNotNow, why)
	}
	if m.step == waiting {
		if err := s.unsettled(t.Gate); err != nil && time.Since(m.since) < passingFor {
			return nil
		} else if err != nil {
			return err
		}
	}
	ready, err := s.advance(m, stops)
	if err != nil || !ready {
		return err
	}
	return s.become(ctx, t)
}

// unsettled tells what an upgrade waits for besides the services.
func (s *supervisor) unsettled(gate *failsafe.Gate) error {
	if s.unshown() {
		return errUnshown
	}
	unlock, ok := gate.TryPlain()
	if !ok {
		return errHeld
	}
	unlock()
	return nil
}

// become hands over to another image of this process, and returns only if that fails. No service runs.
func (s *supervisor) become(ctx context.Context, t service.Session) error {
	guard, ok := s.guard.(adopter)
	if !ok {
		return errors.New("the guard cannot be handed over")
	}
	for until := time.Now().Add(busyFor); ; {
		err := s.tryBecome(ctx, guard, t)
		if !errors.Is(err, child.ErrBusy) && !errors.Is(err, errNotNow) || time.Now().After(until) || !wait.For(ctx, moveLook) {
			return err
		}
	}
}

func (s *supervisor) tryBecome(ctx context.Context, guard adopter, t service.Session) error {
	if !s.fresh(t.Session) {
		return errStale
	}
	left := s.legacy(t.Epoch)
	trees := terms(left.Services)
	s.log.Info("handing over to another image of this process", "running", trees)
	ctx, cancel := context.WithTimeout(ctx, busyFor)
	defer cancel()
	return guard.HandOver(ctx, t.Epoch, len(trees), func(g json.RawMessage) error {
		unlock, ok := t.Gate.TryPlain()
		if !ok {
			return errHeld
		}
		defer unlock()
		var err error
		if left.Session, err = t.Session.Carry(); err != nil {
			return err
		}
		if !t.Gate.Plain() { // a server has granted less meanwhile, which the guardians do not know yet
			return errHeld
		}
		left.Guard = g
		for _, c := range left.Services {
			if c.Term == nil {
				continue
			}
			kept, err := c.Term.Run.Keep()
			defer func() {
				for _, fd := range kept {
					_ = unix.Close(fd)
				}
			}()
			if err != nil {
				return err
			}
		}
		raw, err := json.Marshal(left)
		if err != nil {
			return err
		}
		return s.cfg.Upgrade.Become(raw)
	})
}

func (s *supervisor) legacy(epoch uint64) legacy {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := legacy{
		Version: legacyVersion, Node: s.cfg.Node, Root: s.cfg.Root, Servers: s.cfg.Servers, Since: s.self.Since, Epoch: epoch, Commands: s.commands.Begun(), Births: s.births,
	}
	if s.cfg.Agent != nil {
		left.Agent = s.cfg.Agent.Listen
	}
	for _, v := range s.services {
		left.Services = append(left.Services, v.Record())
	}
	return left
}

// adopt takes over what a former image of this process has left. On an error this process has to end: to its guardians that is
// a supervisor's death, and they do the rest.
func (s *supervisor) adopt(ctx context.Context) error {
	var left legacy
	if err := json.Unmarshal(s.cfg.Legacy, &left); err != nil {
		return fmt.Errorf("read what was handed over: %w", err)
	}
	s.cfg.Legacy = nil
	if !slices.Contains(Handovers(), left.Version) {
		return fmt.Errorf("what was handed over is of version %d, known here: %v", left.Version, Handovers())
	}
	if left.Node != s.cfg.Node || left.Root != s.cfg.Root || !slices.Equal(left.Servers, s.cfg.Servers) {
		return fmt.Errorf("what was handed over is of node %s under %s at %v", left.Node, left.Root, left.Servers)
	}
	machine, ok := s.cfg.Machine.(interface {
		Adopt(ctx context.Context, guard json.RawMessage, node string, log hclog.Logger) (Guard, error)
	})
	if !ok {
		return errors.New("nothing can be handed over on this machine")
	}
	guard, err := machine.Adopt(ctx, left.Guard, s.cfg.Node, s.log)
	if err != nil {
		return err
	}
	for _, c := range left.Services {
		if c.Term == nil {
			continue
		}
		if err := c.Term.Find(guard.(adopter).Adopted, s.log); err != nil {
			return fmt.Errorf("go on with %s: %w", c.Name, err)
		}
	}
	s.guard = guard
	close(s.guarded)
	s.self.Since = left.Since
	s.commands.GoOn(left.Commands)
	if left.Births != nil {
		s.births = left.Births
	}
	s.left = &left
	return nil
}

// reinstate gives each service what was handed over of it. One that is not in the config any more, and runs, is stopped as if it
// had been taken out now.
func (s *supervisor) reinstate() {
	for _, c := range s.left.Services {
		i := slices.IndexFunc(s.services, func(v *service.Service) bool { return v.Name() == c.Name })
		switch {
		case i >= 0:
			s.services[i].Remember(c)
		case c.Term != nil || len(c.Debts) > 0:
			v := s.service(Service{Name: c.Name, Service: config.Service{Eligible: true}})
			v.Remove()
			v.Remember(c)
			s.services = append(s.services, v)
		default:
			s.births[c.Name] = c.Birth
		}
	}
	s.log.Info("going on where the former image of this process has stopped", "running", terms(s.left.Services), "session", election.SessionName(s.left.Session.Session))
}

// open opens a session, the one that was handed over first.
func (s *supervisor) open(ctx context.Context, ensemble *election.Ensemble, epoch uint64) error {
	serve := func(ctx context.Context, sess *election.Session) error {
		renewing, enough := context.WithCancel(ctx)
		var wg sync.WaitGroup
		wg.Go(func() { s.keepCredentials(renewing, sess, ensemble) })
		wg.Go(func() { s.watchExposure(renewing, sess) })
		defer wg.Wait()
		defer enough()
		return s.serve(ctx, sess, epoch)
	}
	if s.left == nil || s.left.Epoch != epoch {
		return ensemble.Open(ctx, serve)
	}
	served := false
	err := ensemble.Resume(ctx, s.left.Session, func(ctx context.Context, sess *election.Session) error {
		served = true
		return serve(ctx, sess)
	})
	if !served { // nothing may be left of it when the next one is opened
		return fmt.Errorf("%w: %w", errUnresumed, err)
	}
	return err
}

// errUnresumed says that a session that was handed over could not even be tried: this process has to end.
var errUnresumed = errors.New("the session that was handed over cannot be used")

// terms tells of which services a term is handed over.
func terms(all []service.Record) (names []string) {
	for _, c := range all {
		if c.Term != nil {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return names
}
