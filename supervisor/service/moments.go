package service

// The goroutine that decides for a service logs these lines, and no other
// one does: the simulation has it hang there. Their words are the log's.
const (
	MomentRole     = "role"
	MomentAgain    = "starting the program again"
	MomentFencing  = "fencing the previous node"
	MomentStopping = "stopping the service"
)
