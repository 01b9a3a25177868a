package guardian

import (
	"bytes"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/supervisor/guard"
)

// lastLog writes what a guardian did in place of its supervisor, as a line of the supervisor's log.
type lastLog struct {
	style      guard.LogStyle
	journal    bool // the line goes to systemd's journal
	supervisor int  // its pid
}

// line is the whole line, or nothing if the log's level leaves it out.
func (l lastLog) line(d guard.Deeds) string {
	var out bytes.Buffer
	log := hclog.New(&hclog.LoggerOptions{
		Name: "understudy.guard", Level: hclog.LevelFromString(l.style.Level), JSONFormat: l.style.JSON, Output: &out,
		DisableTime: l.journal && !l.style.JSON,
	})
	facts := []any{"supervisor", l.supervisor, "reason", d.Why}
	if len(d.Killed) > 0 {
		facts = append(facts, "killed", strings.Join(d.Killed, ", "))
	}
	if d.Took > 0 { // else it was one step, whose length nobody measured
		facts = append(facts, "took", d.Took.Round(100*time.Microsecond))
	}
	if len(d.Undone) > 0 {
		facts = append(facts, "undone", strings.Join(d.Undone, ", "))
	}
	session := "closed"
	switch {
	case d.Err != nil:
		session = "left to expire: " + d.Err.Error()
	case d.Closed < d.Sessions:
		session = "left to expire"
	}
	priority := "<4>"
	facts = append(facts, "session", session)
	if len(d.Alive) > 0 {
		priority = "<3>"
		log.Error("the supervisor is gone, and its guardian could not kill the programs",
			append(facts, "alive", strings.Join(d.Alive, ", "))...)
	} else if len(d.Left) > 0 {
		priority = "<3>"
		log.Error("the supervisor is gone, and its guardian could not undo what oneshots did",
			append(facts, "not undone", strings.Join(d.Left, ", "), "error", d.NotUndone)...)
	} else if len(d.Recorded) > 0 {
		priority = "<3>"
		facts = append(facts, "recorded", strings.Join(d.Recorded, ", "))
		log.Error("the supervisor is gone, and its guardian could not remove the record of what it has undone", facts...)
	} else if len(d.Killed) > 0 {
		log.Warn("the supervisor died, its guardian killed the programs", facts...)
	} else {
		log.Warn("the supervisor is gone, its guardian ended the session", facts...)
	}
	if text := out.String(); text != "" && l.journal {
		return priority + text
	}
	return out.String()
}
