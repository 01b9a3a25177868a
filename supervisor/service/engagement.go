package service

import "understudy/supervisor/failsafe"

// engagement notes that a service may be started here. From then on this node promises no other node not to start it.
type engagement struct {
	service  string
	promises *failsafe.Promises
	engaged  bool
}

func (e *engagement) begin() {
	e.engaged = true
	e.promises.Engage(e.service)
}

func (e *engagement) end() {
	if e.engaged {
		e.engaged = false
		e.promises.Disengage(e.service)
	}
}
