package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/supervisor/service"
)

// logSink turns what a supervisor logs into events of the trace, and into coverage.
type logSink struct {
	hclog.Logger // discards what is not said below
	inc          *incarnation
	with         []any // what each line says besides
}

func newSink(inc *incarnation) hclog.Logger { return logSink{Logger: hclog.NewNullLogger(), inc: inc} }

// With implements hclog.Logger.
func (l logSink) With(args ...any) hclog.Logger {
	l.with = slices.Concat(l.with, args)
	return l
}

// Named implements hclog.Logger.
func (l logSink) Named(string) hclog.Logger { return l }

// Info implements hclog.Logger.
func (l logSink) Info(msg string, args ...any) { l.tell(msg, args) }

// Warn implements hclog.Logger.
func (l logSink) Warn(msg string, args ...any) { l.tell(msg, args) }

// Error implements hclog.Logger.
func (l logSink) Error(msg string, args ...any) { l.tell(msg, args) }

func (l logSink) tell(msg string, args []any) {
	if !l.inc.alive() {
		return
	}
	w := l.inc.node.w
	var b strings.Builder
	pairs := map[string]string{}
	args = slices.Concat(l.with, args)
	for i := 0; i+1 < len(args); i += 2 {
		key, value := fmt.Sprint(args[i]), fmt.Sprint(args[i+1])
		pairs[key] = value
		fmt.Fprintf(&b, " %s=%s", key, value)
	}
	w.say("%s: %s%s", l.inc.node.name, msg, b.String())
	l.inc.hang(msg)
	switch msg {
	case service.MomentRole:
		w.check.tally.cover.saw(pairs["from"], pairs["reason"], pairs["to"])
		if pairs["to"] == "fencing" || pairs["from"] == "active" {
			l.inc.waylay(pairs["service"], pairs["from"] == "active")
		}
	case "the ZooKeeper session has expired, opening a new one; the other nodes agreed not to start what runs (failsafe)":
		w.mu.Lock()
		l.inc.upgradeBetween()
		w.mu.Unlock()
	case "no copy is promoted":
		w.mu.Lock()
		w.copies.unpromoted(pairs["service"], pairs["why"])
		w.mu.Unlock()
	case "ZooKeeper's data of this service is new, or may be set back: waiting until any earlier lease has ended":
		w.mu.Lock()
		w.check.waits[l.inc.node.name+"/"+pairs["service"]] = time.Now()
		w.mu.Unlock()
	case "any earlier lease has ended":
		w.mu.Lock()
		w.check.quarantined(l.inc.node, pairs["service"])
		w.mu.Unlock()
	case "the previous node's program counts as dead after this delay":
		w.mu.Lock()
		w.check.delayed(l.inc.node, pairs["service"])
		w.mu.Unlock()
	case "the program is not proved dead, and the lock is kept":
		w.check.tally.cover.saw("stopping", "tree may be alive", "stopping")
	}
}
