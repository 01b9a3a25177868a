package cli

import (
	"bytes"
	"io"
	"os"
	"strconv"

	"github.com/hashicorp/go-hclog"

	"understudy/supervisor/child/journal"
	"understudy/supervisor/config"
	"understudy/supervisor/printable"
)

// newLog is the supervisor's log, on stderr. systemd's journal knows the time of each line; it is told how grave it is. flush waits, not
// for long, until all of it is written.
func newLog(c config.Logging) (log hclog.Logger, flush func()) {
	out := newOutlet(os.Stderr)
	options := &hclog.LoggerOptions{
		Name: "understudy", Level: hclog.LevelFromString(string(c.Level)), JSONFormat: c.Format == config.LogJSON, Output: out,
	}
	if options.JSONFormat { // of a line that is not JSON hclog escapes all that is no text by itself
		options.Output = printable.JSONLines{To: out}
	}
	if journal.Is(os.Stderr) {
		options.Output, options.DisableTime = graded{options.Output}, !options.JSONFormat
	}
	log = hclog.New(options)
	out.dropped = func(lines int) {
		log.Warn("this log was not read for a while: lines were dropped", "lines", lines)
	}
	return log, out.flush
}

// graded puts sd-daemon(3)'s priorities before the lines.
type graded struct{ io.Writer }

var priorities = map[hclog.Level]int{hclog.Error: 3, hclog.Warn: 4, hclog.Info: 6, hclog.Debug: 7, hclog.Trace: 7}

// LevelWrite is hclog.LevelWriter.
func (g graded) LevelWrite(level hclog.Level, text []byte) (int, error) {
	var said bytes.Buffer
	for line := range bytes.Lines(text) {
		said.WriteString("<" + strconv.Itoa(priorities[level]) + ">")
		said.Write(line)
	}
	if _, err := g.Write(said.Bytes()); err != nil {
		return 0, err
	}
	return len(text), nil
}
