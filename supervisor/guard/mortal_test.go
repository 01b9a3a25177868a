package guard

import (
	"errors"
	"testing"
	"time"
)

// mortal is a box that dies when it is told that it may.
type mortal struct {
	dies    bool
	waits   bool
	struck  int
	looked  int
	removed bool
	shut    bool
	order   func() // told of each order
}

func (m *mortal) Order() {
	m.struck++
	if m.order != nil {
		m.order()
	}
}
func (m *mortal) Waits() bool { return m.waits }
func (m *mortal) Look(othersDead bool) Look {
	m.looked++
	m.struck++
	m.removed = m.removed || othersDead && m.dies
	return Look{Dead: othersDead && m.dies, Again: time.Millisecond}
}
func (m *mortal) Close() { m.shut = true }

// puppet is a guardian whose hands only note what they are told, at a time that the test says.
type puppet struct {
	*Guardian
	boxes   map[Ref]*mortal
	said    []Message
	closing []Closing
	undoes  []uint64 // trees whose effects it was told to undo
	fed     []time.Duration
	now     time.Duration
	parted  []bool // whether the watchdog was told a farewell
}

func newPuppet(cfg Config) *puppet {
	p := &puppet{boxes: map[Ref]*mortal{}}
	p.Guardian = NewGuardian(cfg, p)
	return p
}

func (p *puppet) Open(m *Message) (Box, error) {
	b := p.boxes[*m.Box]
	if b == nil {
		return nil, errors.New("it is gone")
	}
	return b, nil
}
func (p *puppet) Take(*Message) error { return nil }
func (p *puppet) Hold(m *Message) (Effects, error) {
	if string(m.Ticket) == "bad" {
		return nil, errors.New("it cannot")
	}
	return &note{}, nil
}
func (p *puppet) Undo(tree uint64, _ Effects) { p.undoes = append(p.undoes, tree) }
func (p *puppet) Tell(m *Message)             { p.said = append(p.said, *m) }
func (p *puppet) Close(c Closing)             { p.closing = append(p.closing, c) }
func (p *puppet) Feed()                       { p.fed = append(p.fed, p.now) }
func (p *puppet) LetGo(farewell bool)         { p.parted = append(p.parted, farewell) }

// hear is told something, and returns the refusal.
func (p *puppet) hear(now time.Duration, m Message) error {
	p.said = nil
	m.Seq = 1
	p.Hear(now, &m)
	for _, said := range p.said {
		if said.Op == OpNack {
			return said.Err()
		}
	}
	return nil
}

func (p *puppet) turn(now time.Duration, e Events) (next time.Duration, over bool) {
	p.now = now
	return p.Turn(now, e)
}

// guarding is a guardian with a lease until a deadline, and trees of one box each.
func guarding(t *testing.T, cfg Config, deadline time.Duration, boxes ...*mortal) *puppet {
	t.Helper()
	p := newPuppet(cfg)
	all := []Message{{Op: OpTwin}, {Op: OpBegin, Epoch: 1, Ticket: []byte("t")}, {Op: OpExtend, Epoch: 1, Deadline: deadline}}
	for i, b := range boxes {
		ref := Ref{Pid: i + 1}
		p.boxes[ref] = b
		all = append(all, Message{Op: OpTree, Epoch: 1, Tree: uint64(i), Release: []byte{byte('a' + i)}, Name: "db", Box: &ref})
	}
	for _, m := range all {
		if err := p.hear(0, m); err != nil {
			t.Fatalf("%s: %v", m.Op, err)
		}
	}
	return p
}

// closed tells of the newest closing that it went well.
func (p *puppet) closed() Events {
	return Events{Closed: []Closed{{Closing: p.closing[len(p.closing)-1]}}}
}
