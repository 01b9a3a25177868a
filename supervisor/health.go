package supervisor

import "strings"

// What a member says of its health.
const (
	healthy   = "ok"
	starting  = "starting"
	ailing    = "failing"
	unfitness = "unfit"
	exhausted = "failed"
)

// condition is how the programs of an active service are.
type condition uint8

const (
	working  condition = iota // they run, and have shown what they have to
	rising                    // they are about to start, or starting
	backing                   // they have failed, and are started again
	unproved                  // they are to be dead, and are not proved to be
)

// unprovedDeath says that a child may be alive that was to end.
func unprovedDeath(err error) string { return "not proved dead: " + err.Error() }

// ails says what is wrong with the programs.
func (v *service) ails(c condition, why string) {
	v.condition, v.ill = c, why
	v.tell()
}

// wellness is what an active service says of its programs. A check speaks of what runs only.
func (v *service) wellness() (health, why string) {
	v.news.mu.Lock()
	said, astray, c := v.news.health, v.news.astray, v.news.wishes.Control
	v.news.mu.Unlock()
	switch {
	case v.condition == backing, v.condition == unproved:
		return ailing, v.ill
	case v.condition == rising:
		health, why = starting, v.ill
	case said != "":
		return ailing, said
	default:
		health = healthy
	}
	var all []string
	switch {
	case why != "":
		return health, why
	case c.Paused:
		all = append(all, c.Words())
	}
	if astray != "" {
		all = append(all, astray)
	}
	return health, strings.Join(all, "; ")
}

// hear takes up what the health checks have said, and whether the service is paused.
func (v *service) hear() {
	v.news.mu.Lock()
	c := v.news.wishes.Control
	v.news.mu.Unlock()
	if v.halted != c.Paused {
		if v.halted = c.Paused; v.halted {
			v.log.Info("paused: it goes on here, and nobody else is promoted", "service", v.name, "why", c.Words())
		} else {
			v.log.Info("not paused any more", "service", v.name)
		}
	}
	v.tell()
}
