package election

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"
)

// CarriedSession lets another image of this process continue a session, as its only client from then on.
type CarriedSession struct {
	Session  int64           `json:"session"`
	Password []byte          `json:"password"`
	Lease    time.Duration   `json:"lease"`
	Seen     int64           `json:"seen"` // the newest zxid: later reads are not older
	LeaseEnd time.Duration   `json:"lease_end"`
	Beat     int64           `json:"beat"`   // the czxid of nodes/<node>
	Claims   map[string]bool `json:"claims"` // services whose locks may be ours
	Own      OwnZnode        `json:"own"`
	Longest  time.Duration   `json:"longest"` // see Session.Longest

	Addresses map[string][]string `json:"addresses,omitempty"` // of servers, as in a Ticket
}

// Carry describes the session to its next client. This client must not send requests any more.
func (s *Session) Carry() (CarriedSession, error) {
	end, over := s.left()
	id, password := s.identity()
	switch {
	case over != nil:
		return CarriedSession{}, over
	case id == 0 || end == 0:
		return CarriedSession{}, errors.New("there is no open session")
	}
	c := CarriedSession{
		Session: id, Password: password, Lease: s.LeaseLength(), Seen: s.dialer.seen.Load(), LeaseEnd: end, Beat: s.rests(),
		Claims: map[string]bool{}, Own: s.rollbacks.known(), Longest: s.Longest(), Addresses: s.cfg.resolver().known(s.cfg.Servers),
	}
	for service := range s.locks.all() {
		c.Claims[service] = true
	}
	return c, nil
}

// Resume is Open for a session that another image of this process has carried over. It keeps the rest of
// the lease: it calls serve at once, whether or not it can reach a server.
func (e *Sessions) Resume(ctx context.Context, c CarriedSession, serve func(context.Context, *Session) error) error {
	cfg := e.cfg
	cfg.Auth = e.shown()
	cfg.Lease = c.Lease // P1: others have read that one in the beat
	s := newSession(&cfg)
	s.resume(cmp.Or(c.Beat, c.Own.Czxid), c.LeaseEnd)
	s.identify(c.Session, c.Password)
	e.rollbacks.resume(c.Own)
	e.seen.saw(c.Longest)
	cfg.resolver().keep(c.Addresses)
	for service := range c.Claims {
		s.locks.add(Paths{Root: cfg.Root, Service: service})
	}
	return e.open(ctx, s, func(d *dialer) {
		d.seen.Store(c.Seen)
		d.resume = &handshake{timeout: sessionTimeout(c.Lease), session: c.Session, password: c.Password}
	}, serve)
}

// CarriedClaim is a lock that is ours, with a breadcrumb that names us, as another image of this process held it.
type CarriedClaim struct {
	Token     int64           `json:"token"`
	Since     time.Time       `json:"since"`
	Lock      int64           `json:"lock,omitempty"` // its czxid, unless that is the token
	Name      string          `json:"name"`           // of the claim
	Crumb     json.RawMessage `json:"crumb"`
	Version   int32           `json:"version"`
	OwnZnodes []string        `json:"own_znodes,omitempty"`
}

// Carry describes the claim to the next image. No goroutine may use the claim any more.
func (c *Claim) Carry() (CarriedClaim, error) {
	if !c.found || c.Previous != nil {
		return CarriedClaim{}, errors.New("the breadcrumb does not name us")
	}
	carried := CarriedClaim{
		Token: c.Token, Since: c.Since, Name: c.name, Crumb: encode(c.crumb), Version: c.version, OwnZnodes: c.ownZnodes,
	}
	if c.czxid != c.Token {
		carried.Lock = c.czxid
	}
	return carried, nil
}

// Resume continues a claim. It reads nothing: Watch finds out whether the claim still holds, and every transaction checks it.
func (c *Candidate) Resume(carried CarriedClaim) (*Claim, error) {
	crumb, err := decode[BreadCrumb](carried.Crumb)
	if err != nil {
		return nil, err
	}
	claim := c.acquisition.claim(crumb, carried.Token, carried.Name, carried.OwnZnodes)
	claim.Since, claim.czxid = carried.Since, cmp.Or(carried.Lock, carried.Token)
	claim.found, claim.version, claim.record = true, carried.Version, crumb.Name
	return claim, nil
}

// CarriedCandidate lists the znodes of a candidate. Another candidate of the same session continues with them.
type CarriedCandidate struct {
	Session    int64       `json:"session,omitempty"`
	GUID       string      `json:"guid,omitempty"`
	Place      string      `json:"place,omitempty"`
	Preference string      `json:"preference,omitempty"`
	Tried      *BreadCrumb `json:"tried,omitempty"` // the breadcrumb that belongs to a lock that may be ours
}

// Carry describes the candidate to its successor. Nobody may use the candidate any more.
func (c *Candidate) Carry() CarriedCandidate {
	s := CarriedCandidate{Session: c.s.ID(), Place: c.queue.place, Preference: c.preference.path}
	if !c.queue.left {
		s.GUID = c.queue.mark
	}
	if c.acquisition.mayHoldLock {
		s.Tried = &c.acquisition.triedCrumb
	}
	return s
}

// Inherit takes over the znodes of another candidate of the same session. Those of another session are gone with it; with its name
// we would not recognize our own place in the queue, and would wait behind it.
func (c *Candidate) Inherit(s CarriedCandidate) {
	if s.Session != c.s.ID() {
		return
	}
	c.preference.path = s.Preference
	c.queue.inherit(s.GUID != "", s.Place)
	if s.Tried != nil {
		c.acquisition.inherit(*s.Tried)
	}
}
