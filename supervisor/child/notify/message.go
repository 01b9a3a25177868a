package notify

import "strings"

// Message is one datagram. What was not said is zero.
type Message struct {
	Ready   bool
	Claimed bool // our own: another machine claims the address that the program keeps
}

// Claimed is the name of that variable.
const Claimed = "X_UNDERSTUDY_CLAIMED"

// Parse reads a datagram. Whatever makes no sense in it is passed over, and so is what nobody here asks for.
func Parse(datagram []byte) (m Message) {
	for line := range strings.SplitSeq(string(datagram), "\n") {
		switch line {
		case "READY=1":
			m.Ready = true
		case Claimed + "=1":
			m.Claimed = true
		}
	}
	return m
}
