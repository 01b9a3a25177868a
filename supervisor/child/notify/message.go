package notify

import "strings"

// Message is one datagram. What was not said is zero.
type Message struct {
	Ready bool
	// Our own programs say these.
	Claimed bool    // another machine claims the address that the program keeps
	Lost    *string // why that address has no link; "": it has one again
	Why     string  // the program is about to fail
}

// The names of those variables.
const (
	Claimed = "X_UNDERSTUDY_CLAIMED"
	Lost    = "X_UNDERSTUDY_LOST"
	Why     = "X_UNDERSTUDY_WHY"
)

// Parse reads a datagram. Whatever makes no sense in it is passed over, and so is what nobody here asks for.
func Parse(datagram []byte) (m Message) {
	for line := range strings.SplitSeq(strings.ToValidUTF8(string(datagram), "?"), "\n") {
		switch name, value, _ := strings.Cut(line, "="); {
		case line == "READY=1":
			m.Ready = true
		case line == Claimed+"=1":
			m.Claimed = true
		case name == Lost:
			m.Lost = &value
		case name == Why:
			m.Why = value
		}
	}
	return m
}
