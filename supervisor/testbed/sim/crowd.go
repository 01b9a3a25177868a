package sim

import "fmt"

// In one of so many seeds a supervisor has many services, whose requests wait for one another.
const (
	crowdIn   = 11 // prime to what chooses the other worlds: each has crowds, and none has crowds alone
	crowdFrom = 5
	crowd     = 6

	manyIn = 3 // one in so many of the crowds whose data is set back is on so many nodes
	many   = 8
)

// manyNodes tells whether the seed's crowd is on many nodes.
func (p *Plan) manyNodes() bool {
	return p.Seed%crowdIn == crowdFrom && p.Seed%rewindsIn == rewindsFrom && p.Seed/(crowdIn*rewindsIn)%manyIn == 0
}

func (p *Plan) crowd() {
	if p.Seed%crowdIn == crowdFrom {
		p.Services, p.InTurn = crowd, 1+int(p.Seed/crowdIn)%2
	}
}

func (p *Plan) crowdWords() string {
	if p.InTurn == 0 {
		return ""
	}
	return fmt.Sprintf(", %d requests in turn at once", p.InTurn)
}
