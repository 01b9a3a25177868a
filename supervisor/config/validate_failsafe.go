package config

import "time"

// failsafe checks that others can be asked for promises, and have the time to answer.
func (v *validator) failsafe(p path, on OnLoss) {
	const shortest, longest = 2 * time.Second, 10 * time.Minute
	v.choice(p, string(on), on)
	if on != OnLossFailsafe {
		return
	}
	if !v.hasAgent {
		v.ratio([]path{p, {"fencing", "agent"}}, "failsafe asks the other members through their fencing agents: set fencing.agent, here and on all nodes")
	}
	keys := []path{p, {"zookeeper", "session_timeout"}}
	if t := v.session; t > 0 && t < shortest {
		v.ratio(keys, "with a session_timeout of %v the other members would have %v to answer, between the doubt about ZooKeeper and the time to "+
			"stop: failsafe takes a session_timeout of %v or more", t, (t * 7 / 40).Round(time.Millisecond), shortest)
	} else if t > longest {
		v.ratio(keys, "with a session_timeout of %v a promise would bind the other members for as long: failsafe takes one of %v or less", t, longest)
	}
}
