package service

import "understudy/election"

// story describes the newest term for hooks, for the other nodes, and for the log.
type story struct {
	token   int64
	fenced  string          // the proof of the former active's death
	failure string          // why this node gave the service up
	cause   election.Reason // of the newest stop
}

// claimed begins the story of another term.
func (s *story) claimed(token int64) { s.token, s.failure = token, "" }

// formerDead notes the proof of the former active's death.
func (s *story) formerDead(by string) { s.fenced = by }

// failed notes the failure.
func (s *story) failed(why string) { s.failure = why }

// stopped notes why the programs ended.
func (s *story) stopped(why election.Reason) { s.cause = why }
