package notify

import (
	"strconv"
	"strings"
)

// Message is one datagram. What was not said is zero.
type Message struct {
	Ready, Watchdog bool
	Claimed         bool // our own: another machine claims the address that the program keeps
	HasStatus       bool
	Status          string
}

const maxStatus = 1024

// Claimed is the name of that variable.
const Claimed = "X_UNDERSTUDY_CLAIMED"

// Parse reads a datagram. Whatever makes no sense in it is passed over.
func Parse(datagram []byte) Message {
	var m Message
	for line := range strings.SplitSeq(string(datagram), "\n") {
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			continue
		}
		switch name {
		case "READY":
			m.Ready = m.Ready || value == "1"
		case "WATCHDOG":
			m.Watchdog = m.Watchdog || value == "1"
		case Claimed:
			m.Claimed = m.Claimed || value == "1"
		case "STATUS":
			m.HasStatus, m.Status = true, printable(value)
		}
	}
	return m
}

// printable keeps a status to one short line that a terminal can be shown.
func printable(status string) string {
	status = strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(status, "?"))
	if len(status) > maxStatus {
		status = strings.ToValidUTF8(status[:maxStatus], "")
	}
	return status
}
