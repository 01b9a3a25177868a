package steps

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"understudy/election"
)

// service is what is there of a service, and what runs.
type service struct {
	*Acceptor
	paths  election.Paths
	lock   *lock
	record *record
	claims map[string]bool // the names that are there
	used   map[string]bool // and all that there were
	alive  map[any]Program
	newest int64          // the greatest token of a start
	sworn  map[int64]bool // tokens whose record an operator has deleted: nobody knows of their programs
	taken  map[int64]bool // tokens whose lock went by another's doing
}

// change is what a transaction does to one service.
type change struct {
	Txn
	checks                                  map[string]bool
	lock                                    *election.Lock // made
	lockGone, recordMade, recordGone, whole bool
	record                                  *election.BreadCrumb // made or written
	claimed, unclaimed, named, unnamed      []string
}

func (c *change) add(op Op, what string) {
	path, kind := op.Path, op.Kind
	lists := map[Kind]*[]string{Create: &c.claimed, Delete: &c.unclaimed}
	if strings.HasPrefix(what, "record-") {
		lists = map[Kind]*[]string{Create: &c.named, Delete: &c.unnamed}
	}
	switch {
	case what == "ActiveStandbyElectorLock" && kind == Create:
		c.lock = &election.Lock{}
		_ = json.Unmarshal(op.Data, c.lock)
	case what == "ActiveStandbyElectorLock" && kind == Delete:
		c.lockGone = true
	case what == "ActiveBreadCrumb" && kind == Delete:
		c.recordGone = true
	case what == "ActiveBreadCrumb":
		b, _ := election.ReadBreadCrumb(op.Data)
		c.record, c.recordMade = &b, kind == Create
	case (strings.HasPrefix(what, "claim-") || strings.HasPrefix(what, "record-")) && lists[kind] != nil:
		*lists[kind] = append(*lists[kind], path)
	case what == "" && kind == Delete:
		c.whole = true
	}
}

// covered reports whether a transaction fails if anybody has claimed since its writer looked.
func (s *service) covered(c *change) bool {
	for claim := range s.claims {
		if !c.checks[claim] && !slices.Contains(c.unclaimed, claim) {
			return false
		}
	}
	return len(s.claims) > 0 || c.checks[s.paths.Dir()] || c.lock != nil // which writes the folder at its version
}

// sameRecord reports whether a transaction fails if the record is another one by then, as names.pml has it.
func (s *service) sameRecord(c *change) bool {
	name := s.paths.Dir() + "/record-" + s.record.Name
	return s.record.Name == "" || c.checks[name] || slices.Contains(c.unnamed, name)
}

// lives finds a program of an activation that is alive.
func (s *service) lives(token int64) (Program, bool) {
	for _, p := range s.alive {
		if p.Token == token && !s.sworn[token] && !s.spared(p) {
			return p, true
		}
	}
	return Program{}, false
}

// unsigned reports whether the record is of the session that has the lock, and has no token yet.
func (s *service) unsigned() bool {
	return s.lock != nil && s.record != nil && s.record.Token == 0 && s.record.Session == election.SessionName(s.lock.owner)
}

// own reports whether the record is of the lock's own activation.
func (s *service) own() bool {
	return s.record != nil && (s.record.token() == s.lock.token || s.unsigned())
}

// outlasts reports whether the record's program may outlast its session, by promises.
func (s *service) outlasts() bool { return s.record != nil && s.record.Failsafe.Binds() }

// sameTerm reports whether a record that is written is the one that is there.
func (s *service) sameTerm(c *change) bool {
	return !c.recordMade && s.record != nil && bytes.Equal(s.record.Tree, c.record.Tree) && s.record.Session == c.record.Session
}

// judge finds out which step a change is, and what is wrong with it.
func (s *service) judge(c *change) (step string, err error) {
	switch {
	case c.whole:
		return "forget", when(s.lock != nil || s.record != nil, "lock or record are there")
	case c.lock != nil && c.record != nil && !c.recordMade:
		return "reclaim (failsafe.pml)", s.reclaim(c)
	case c.lock != nil:
		return "claim (mayclaim)", s.claim(c)
	case c.lockGone && s.lock != nil && s.lock.owner == c.Session:
		return "release (maydelete)", s.release(c)
	case c.lockGone:
		return "vacate (succession.pml)", s.vacate(c)
	case c.recordGone:
		return "removal of the record (maydisown)", s.removal(c)
	case c.record != nil && !s.sameTerm(c):
		return "inscribe (maywrite)", s.inscribe(c)
	case c.record != nil:
		return "sign (unsigned_)", s.sign(c)
	case len(c.named) > 0:
		return "a record's name made again (names.pml)", when(s.record == nil || c.named[0] != s.paths.Dir()+"/record-"+s.record.Name,
			"the record has another name")
	case len(c.claimed)+len(c.unclaimed)+len(c.unnamed) > 0:
		return "none", errors.New("names come and go with claims and records alone")
	}
	return "", nil
}

func when(wrong bool, format string, args ...any) error {
	if wrong {
		return fmt.Errorf(format, args...)
	}
	return nil
}

// newName is the name of a claim.
func (s *service) newName(c *change) error {
	switch {
	case s.lock != nil:
		return fmt.Errorf("there is a lock, %v", s.lock)
	case len(c.claimed) != 1:
		return fmt.Errorf("it makes %d names", len(c.claimed))
	case s.used[c.claimed[0]]:
		return fmt.Errorf("%s was there before", c.claimed[0])
	}
	return when(!s.covered(c), "the name of another claim stays")
}

func (s *service) claim(c *change) error {
	if err := s.newName(c); err != nil || c.record == nil {
		return err
	}
	return s.written(c, 0)
}

// written is about a record that is made, or written over another one.
func (s *service) written(c *change, token int64) error {
	switch {
	case c.record.Session != election.SessionName(c.Session):
		return fmt.Errorf("the record gives session %s", c.record.Session)
	case !slices.Equal(c.named, []string{s.paths.Dir() + "/record-" + c.record.Name}):
		return fmt.Errorf("the record has the name %q, and made are %q", c.record.Name, c.named)
	}
	return when(c.record.Token != token, "the record gives token %d in place of %d", c.record.Token, token)
}

func (s *service) reclaim(c *change) error {
	if err := s.newName(c); err != nil {
		return err
	}
	switch r := s.record; {
	case r == nil || !r.Failsafe.Binds() || !bytes.Equal(r.Tree, c.record.Tree) || r.Node != c.record.Node:
		return fmt.Errorf("the record is %v", r)
	case c.record.Token != r.token() || c.lock.Token != r.token():
		return fmt.Errorf("the record gives token %d, the lock %d, in place of %d", c.record.Token, c.lock.Token, r.token())
	}
	return when(!s.sameRecord(c), "the record's name is not checked")
}

func (s *service) release(c *change) error {
	switch p, lives := s.lives(s.lock.token); {
	case !s.covered(c):
		return errors.New("the name of the newest claim is not checked")
	case lives:
		return fmt.Errorf("%v is alive (P2)", p)
	case c.recordGone && (!s.own() || !s.sameRecord(c)):
		return fmt.Errorf("it removes a record that is %v, or does not check its name", s.record)
	case !c.recordGone && s.own() && !s.lock.found:
		return errors.New("its own record stays")
	}
	return nil
}

func (s *service) vacate(c *change) error {
	if s.lock == nil {
		return errors.New("there is no lock")
	}
	holder, by := s.session(s.lock.owner), s.session(c.Session)
	still := c.At.Sub(holder.moved)
	p, lives := s.lives(s.lock.token)
	switch mine := by.node != "" && by.node == s.lock.node; {
	case !s.covered(c):
		return errors.New("the name of the newest claim is not checked")
	case lives && !s.outlasts():
		return fmt.Errorf("%v is alive (P2)", p)
	case c.recordGone && (!mine || !s.own() || !s.sameRecord(c)):
		return fmt.Errorf("it removes a record that is %v, or does not check its name", s.record)
	case mine: // its own earlier session's
		return nil
	case s.beats[holder.node] == s.lock.owner && !c.checks[election.NodesDir(s.root)+"/"+holder.node]:
		return fmt.Errorf("the beat of %s is not checked", holder.node)
	case still < holder.lease:
		return fmt.Errorf("the beat of %s stood still for %v, its lease is %v", holder.node, still.Round(time.Millisecond), holder.lease)
	}
	return nil
}

func (s *service) removal(c *change) error {
	if s.record == nil {
		return errors.New("there is no record")
	}
	p, lives := s.lives(s.record.token())
	switch {
	case !s.covered(c):
		return errors.New("the name of the newest claim is not checked")
	case !s.sameRecord(c):
		return errors.New("the record's name is not checked")
	case lives:
		return fmt.Errorf("%v is alive (P2)", p)
	}
	beat := s.beats[s.record.Node]
	registered := beat != 0 && s.record.Session == election.SessionName(beat)
	return when(registered && !s.supervises(c.Session), "its session is registered (sworn)")
}

func (s *service) inscribe(c *change) error {
	switch {
	case s.lock == nil || s.lock.owner != c.Session:
		return fmt.Errorf("the lock is %v", s.lock)
	case !c.checks[s.paths.Lock()]:
		return errors.New("the lock is not checked")
	case !s.covered(c):
		return errors.New("the name of the newest claim is not checked")
	case s.record != nil && !s.sameRecord(c):
		return errors.New("the record's name is not checked")
	}
	if s.record != nil {
		if p, lives := s.lives(s.record.token()); lives && s.record.token() != s.lock.token {
			return fmt.Errorf("%v is alive (P1, P5)", p)
		}
	}
	return s.written(c, s.lock.token)
}

func (s *service) sign(c *change) error {
	token := s.record.Token
	if s.unsigned() && c.record.Token != 0 && s.lock.owner == c.Session {
		token = s.lock.token
	} else if token == 0 && c.record.Token == s.record.czxid && c.record.Session == election.SessionName(c.Session) {
		token = s.record.czxid
	}
	switch {
	case !s.covered(c):
		return errors.New("the name of the newest claim is not checked")
	case !s.sameRecord(c):
		return errors.New("the record's name is not checked")
	case c.record.Token != token:
		return fmt.Errorf("the record gives token %d in place of %d", c.record.Token, token)
	}
	same := c.record.Name == s.record.Name && c.record.Node == s.record.Node
	return when(!same, "the record gives %s and the name %q", c.record.Node, c.record.Name)
}

// apply has the change take effect, whether or not it is a step.
func (s *service) apply(c *change) {
	for _, claim := range c.unclaimed {
		delete(s.claims, claim)
	}
	for _, claim := range c.claimed {
		s.claims[claim], s.used[claim] = true, true
	}
	if c.lockGone && s.lock != nil {
		s.taken[s.lock.token], s.lock = s.taken[s.lock.token] || s.lock.owner != c.Session, nil
	}
	if c.lock != nil {
		s.lock = &lock{node: c.lock.Node, owner: c.Session, token: c.Zxid, found: c.ByHand}
		if c.lock.Token != 0 {
			s.lock.token = c.lock.Token
		}
		s.claimed[s.lock.token] = s.paths.Service
	}
	if was := s.record; c.recordGone && was != nil {
		s.record = nil
		if _, lives := s.lives(was.token()); lives {
			s.sworn[was.token()] = true // by hand; or it was told
		}
	}
	if c.record != nil {
		czxid := c.Zxid
		if s.record != nil && !c.recordMade {
			czxid = s.record.czxid
		}
		s.record = &record{*c.record, czxid}
	}
}
