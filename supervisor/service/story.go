package service

import "understudy/election"

// story is what is told of the newest term: to hooks, to the other nodes, and in the log.
type story struct {
	token   int64
	fenced  string          // how the former active was known to be dead
	failure string          // why the service was given up here
	cause   election.Reason // of the newest stop
}

// claimed begins the story of another term.
func (s *story) claimed(token int64) { s.token, s.failure = token, "" }

// formerDead notes how the former active was known to be dead.
func (s *story) formerDead(by string) { s.fenced = by }

// failed notes what went wrong.
func (s *story) failed(why string) { s.failure = why }

// stopped notes what ended the programs.
func (s *story) stopped(why election.Reason) { s.cause = why }
