package supervisor

import (
	"understudy/election"
	"understudy/supervisor/child"
	"understudy/supervisor/witness"
)

// Guardian is the main function of a guardian process: it outlives its supervisor for as long as it takes to end what the
// supervisor ran, and to give back what it held.
func Guardian() int { return child.GuardianMain(election.CloseEncoded, witness.InGuardian) }
