package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"understudy/supervisor/config"
)

// newLog is the supervisor's log, on stderr. systemd's journal knows the time of each line; it is told how grave it is.
func newLog(c config.Log) hclog.Logger {
	options := &hclog.LoggerOptions{
		Name: "understudy", Level: hclog.LevelFromString(string(c.Level)), JSONFormat: c.Format == config.LogJSON, Output: os.Stderr,
	}
	if toJournal(int(os.Stderr.Fd())) {
		options.Output, options.DisableTime = journal{os.Stderr}, !options.JSONFormat
	}
	return hclog.New(options)
}

// toJournal says whether a file is the stream to the journal that systemd has given this service.
func toJournal(fd int) bool {
	var is unix.Stat_t
	return unix.Fstat(fd, &is) == nil && os.Getenv("JOURNAL_STREAM") == fmt.Sprintf("%d:%d", is.Dev, is.Ino)
}

// journal puts sd-daemon(3)'s priorities before the lines.
type journal struct{ io.Writer }

var priorities = map[hclog.Level]int{hclog.Error: 3, hclog.Warn: 4, hclog.Info: 6, hclog.Debug: 7, hclog.Trace: 7}

// LevelWrite is hclog.LevelWriter.
func (j journal) LevelWrite(level hclog.Level, text []byte) (int, error) {
	var said bytes.Buffer
	for line := range bytes.Lines(text) {
		said.WriteString("<" + strconv.Itoa(priorities[level]) + ">")
		said.Write(line)
	}
	if _, err := j.Write(said.Bytes()); err != nil {
		return 0, err
	}
	return len(text), nil
}
