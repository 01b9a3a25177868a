package service

import (
	"strings"
	"sync"

	"understudy/election"
)

// condition is how the programs of an active service are.
type condition uint8

const (
	working  condition = iota // they run, and have shown that they work
	rising                    // they are about to start, or starting
	backing                   // they have failed, and are started again
	unproved                  // they were killed, and are not proved dead
)

// wellness is how the programs are, with reasons. A health check says something of those that run only.
type wellness struct {
	condition condition
	ill       string // what is wrong with them
	news      news

	mu     sync.Mutex // guards what follows, which a run tells
	health string     // what the newest health check says; "": it passed
	astray string     // which programs have left their cgroups
}

// are notes how the programs are.
func (w *wellness) are(c condition, ill string) { w.condition, w.ill = c, ill }

// proved says that the programs, if they could not be proved dead, are dead now.
func (w *wellness) proved() {
	if w.condition == unproved {
		w.are(working, "")
	}
}

// begin forgets what a former run has told.
func (w *wellness) begin() { w.tell(func() { w.health, w.astray = "", "" }) }

// checked notes what the newest health check says.
func (w *wellness) checked(said string) { w.tell(func() { w.health = said }) }

// strayed notes which programs have left their cgroups.
func (w *wellness) strayed(said string) { w.tell(func() { w.astray = said }) }

func (w *wellness) tell(change func()) {
	w.mu.Lock()
	change()
	w.mu.Unlock()
	w.news.stir()
}

func (w *wellness) told() (health, astray string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.health, w.astray
}

// of is what an active service says of its programs.
func (w *wellness) of(c election.Control) (election.Health, string) {
	health, astray := w.told()
	switch {
	case w.condition == backing, w.condition == unproved:
		return election.HealthFailing, w.ill
	case w.condition == rising && w.ill != "":
		return election.HealthStarting, w.ill
	case w.condition != rising && health != "":
		return election.HealthFailing, health
	}
	var all []string
	if c.Paused {
		all = append(all, c.Words())
	}
	if astray != "" {
		all = append(all, astray)
	}
	if w.condition == rising {
		return election.HealthStarting, strings.Join(all, "; ")
	}
	return election.HealthOK, strings.Join(all, "; ")
}
