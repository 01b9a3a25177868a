package service

import (
	"cmp"
	"strings"
	"sync"

	"understudy/election"
)

// condition is the condition of an active service's programs.
type condition uint8

const (
	working  condition = iota // they run and are ready
	rising                    // they are about to start, or starting
	backing                   // they have failed, and start again
	unproved                  // they were killed, but not proved dead
)

// wellness is the programs' condition, with reasons. A health check counts only while the programs run.
type wellness struct {
	condition condition
	ill       string // the fault
	news      news

	mu       sync.Mutex // guards the fields below, which a run writes
	health   string     // the fault by the newest health check; "": it passed
	astray   string     // which processes are in other cgroups
	lost     string     // why an address of the service has no link
	unlogged string     // why output is lost
	unseen   string     // for whom the primary of a replicated service is not reachable
}

// are notes the programs' condition.
func (w *wellness) are(c condition, ill string) { w.condition, w.ill = c, ill }

// proved notes that programs without a proof of death are dead now.
func (w *wellness) proved() {
	if w.condition == unproved {
		w.are(working, "")
	}
}

// forgetRun drops the notes of a previous run.
func (w *wellness) forgetRun() {
	w.change(func() { w.health, w.astray, w.unseen, w.lost = "", "", "", "" })
}

// checked notes the newest health check's result.
func (w *wellness) checked(said string) { w.change(func() { w.health = said }) }

// strayed notes which processes are in other cgroups.
func (w *wellness) strayed(said string) { w.change(func() { w.astray = said }) }

// seen notes whether others reach the primary. That it is not reachable is no fault of the programs: where nobody else is fit they go on.
func (w *wellness) seen(said string) { w.change(func() { w.unseen = said }) }

// cutOff notes whether an address of the service has a link.
func (w *wellness) cutOff(why string) {
	if w.isCutOff() != why { // it is told again and again
		w.change(func() { w.lost = why })
	}
}

// losesOutput notes why output is lost.
func (w *wellness) losesOutput(why string) { w.change(func() { w.unlogged = why }) }

func (w *wellness) output() (lost string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unlogged
}

func (w *wellness) isCutOff() (why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lost
}

func (w *wellness) change(do func()) {
	w.mu.Lock()
	do()
	w.mu.Unlock()
	w.news.wake()
}

func (w *wellness) read() (health, astray, unseen string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return cmp.Or(w.lost, w.health), w.astray, w.unseen
}

// of describes an active service's programs.
func (w *wellness) of(c election.Control) (election.Health, string) {
	health, astray, unseen := w.read()
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
	for _, more := range []string{astray, unseen} {
		if more != "" {
			all = append(all, more)
		}
	}
	if w.condition == rising {
		if health != "" {
			all = append(all, health)
		}
		return election.HealthStarting, strings.Join(all, "; ")
	}
	return election.HealthOK, strings.Join(all, "; ")
}
