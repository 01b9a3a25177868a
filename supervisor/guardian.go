package supervisor

import (
	"understudy/election"
	"understudy/supervisor/child"
	"understudy/supervisor/witness"
)

// Guardian is the main function of a guardian process. It outlives its supervisor until it has killed the supervisor's programs, and has
// given its locks back.
func Guardian() int { return child.GuardianMain(election.CloseEncoded, witness.InGuardian) }
