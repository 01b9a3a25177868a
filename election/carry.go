package election

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// Carried is what another image of this process needs to go on with a session: the sole client of it from then on.
type Carried struct {
	Session  int64           `json:"session"`
	Password []byte          `json:"password"`
	Timeout  time.Duration   `json:"timeout"` // that it counts with
	Seen     int64           `json:"seen"`    // the newest zxid: what is read later is not older
	LeaseEnd time.Duration   `json:"lease_end"`
	Claims   map[string]bool `json:"claims"` // services whose locks may be ours
}

// Carry tells what another client of the session needs. This one must not send anything any more.
func (s *Session) Carry() (Carried, error) {
	timeout, end, over := s.Lease.left()
	id, password := s.identity()
	switch {
	case over != nil:
		return Carried{}, over
	case id == 0 || end == 0:
		return Carried{}, errors.New("no session stands")
	}
	c := Carried{Session: id, Password: password, Timeout: timeout, Seen: s.dialer.seen.Load(), LeaseEnd: end, Claims: map[string]bool{}}
	for service := range s.locks.all() {
		c.Claims[service] = true
	}
	return c, nil
}

// Resume is Open for a session that another image of this process has carried over. The lease is what was left of it: serve is
// called at once, whether or not a server can be reached.
func (e *Ensemble) Resume(ctx context.Context, c Carried, serve func(context.Context, *Session) error) error {
	cfg := e.cfg
	cfg.Auth = e.shown()
	cfg.Timeout = c.Timeout // asking for another one would change the session's
	s := newSession(&cfg)
	s.Lease.resume(c.Timeout, max(c.Timeout, e.cfg.Timeout), c.LeaseEnd)
	s.identify(c.Session, c.Password)
	s.Self.Say(func(n *Node) { n.SessionMs = c.Timeout.Milliseconds() })
	for service := range c.Claims {
		s.locks.add(Paths{Root: cfg.Root, Service: service})
	}
	return e.open(ctx, s, func(d *dialer) {
		d.seen.Store(c.Seen)
		d.resume = &handshake{timeout: c.Timeout, session: c.Session, password: c.Password}
	}, serve)
}

// CarriedClaim is a lock that is ours, with a breadcrumb that names us, as another image of this process held it.
type CarriedClaim struct {
	Token   int64           `json:"token"`
	Since   time.Time       `json:"since"`
	Number  int32           `json:"number"`
	Crumb   json.RawMessage `json:"crumb"`
	Version int32           `json:"version"`
	Stakes  []string        `json:"stakes,omitempty"`
}

// Carry tells what is needed to go on with the claim. Nothing may be using it.
func (c *Claim) Carry() (CarriedClaim, error) {
	if !c.found || c.Previous != nil {
		return CarriedClaim{}, errors.New("the breadcrumb does not name us")
	}
	return CarriedClaim{Token: c.Token, Since: c.Since, Number: c.number, Crumb: encode(c.crumb), Version: c.version, Stakes: c.stakes}, nil
}

// Resume goes on with a claim. Nothing is read for it: Watch finds out whether it still holds, and every transaction says so.
func (c *Candidate) Resume(carried CarriedClaim) (*Claim, error) {
	crumb, err := decode[BreadCrumb](carried.Crumb)
	if err != nil {
		return nil, err
	}
	claim := c.taking.claim(crumb, carried.Token, carried.Number, carried.Stakes)
	claim.Since, claim.version, claim.found = carried.Since, carried.Version, true
	return claim, nil
}

// CarriedCandidate is what a candidate has in ZooKeeper. Another one of the same session goes on with it.
type CarriedCandidate struct {
	Session    int64       `json:"session,omitempty"`
	GUID       string      `json:"guid,omitempty"`
	Place      string      `json:"place,omitempty"`
	Preference string      `json:"preference,omitempty"`
	Tried      *BreadCrumb `json:"tried,omitempty"` // what was to be written with a lock that may be ours
}

// Carry tells what the candidate has. It must not be used any more.
func (c *Candidate) Carry() CarriedCandidate {
	s := CarriedCandidate{Session: c.s.ID(), Place: c.queue.place, Preference: c.preference.path}
	if !c.queue.left {
		s.GUID = c.queue.mark
	}
	if c.taking.unsure {
		s.Tried = &c.taking.tried
	}
	return s
}

// Inherit takes over what another candidate of the same session has. What one of another session had is gone with it, and under
// its name no later one of ours would know our place again: it would wait behind it.
func (c *Candidate) Inherit(s CarriedCandidate) {
	if s.Session != c.s.ID() {
		return
	}
	c.queue.place, c.preference.path = s.Place, s.Preference
	c.queue.left = c.queue.left && s.GUID == ""
	if s.Tried != nil {
		c.taking.unsure, c.taking.tried = true, *s.Tried
	}
}
