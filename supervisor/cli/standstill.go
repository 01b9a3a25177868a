package cli

import (
	"bytes"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
)

// standsStill logs where a service stands still. It returns soon, whatever else of this process hangs.
func standsStill(log hclog.Logger, flush func(), service string, stood time.Duration, stack func() string) {
	told := make(chan struct{})
	go func() {
		defer close(told)
		log.Error("internal error (please report): a service does not react, so this supervisor ends. "+
			"Its guardians kill its programs, and other nodes take over",
			"service", service, "for", stood.Round(time.Millisecond), "stack", stack())
		flush()
	}()
	select {
	case <-told:
	case <-time.After(2 * lastWords):
	}
}

// deciders are the stacks of the goroutines that decide for services, and then those of others, as far as there is room.
func deciders() string {
	var all bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&all, 2) // a Buffer does not fail
	var deciding, others strings.Builder
	for one := range strings.SplitAfterSeq(all.String(), "\n\n") {
		if strings.Contains(one, "/role.Drive(") {
			deciding.WriteString(one)
		} else {
			others.WriteString(one)
		}
	}
	text := deciding.String() + others.String()
	return text[:min(len(text), stackRoom)]
}

const stackRoom = 64 << 10
