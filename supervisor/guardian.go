package supervisor

import (
	"understudy/election"
	"understudy/supervisor/child"
	"understudy/supervisor/witness"
)

// Guardian is the main function of a guardian process: it outlives its supervisor until it has ended what that ran, and has given back
// what that held.
func Guardian() int { return child.GuardianMain(election.CloseEncoded, witness.InGuardian) }
