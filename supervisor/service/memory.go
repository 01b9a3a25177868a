package service

import (
	"understudy/election"
)

// memory holds facts that outlive a term and a session of a service.
type memory struct {
	begun      bool                      // it has had its first stay, if in a former image of this process
	birth      election.Birth            // of the service's folder, as last seen
	place      election.CarriedCandidate // the znodes that the former candidate could not delete
	story      story
	restarts   restarts
	preference preference
}

// first tells, once, that the service has its first stay.
func (m *memory) first() bool {
	first := !m.begun
	m.begun = true
	return first
}

// born notes the folder's birth, if it is the one that is known or none is known.
func (m *memory) born(b election.Birth) (lost bool) {
	if m.birth == (election.Birth{}) {
		m.birth = b
	}
	return m.birth != b
}

// reborn notes that ZooKeeper has lost its data, and that no earlier program can run any more.
func (m *memory) reborn(b election.Birth) { m.birth = b }

// left keeps the znodes that a candidate could not delete for the next one of its session.
func (m *memory) left(place election.CarriedCandidate) { m.place = place }

// inherit returns them, once.
func (m *memory) inherit() (place election.CarriedCandidate) {
	place, m.place = m.place, election.CarriedCandidate{}
	return place
}
