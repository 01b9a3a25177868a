package web

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/supervisor/loglimit"
)

// lineWindow is how often clients can cause a line of the log, of each kind.
const lineWindow = time.Minute

// complaints are the lines that they can cause.
type complaints struct{ tooMany, wrong, misnamed, unreadable, muttered *loglimit.Line }

func newComplaints(log hclog.Logger) complaints {
	line := func(words string) *loglimit.Line { return &loglimit.Line{Log: log, Words: words, Window: lineWindow} }
	return complaints{
		tooMany:    line("too many HTTP connections"),
		wrong:      line("a client sent a wrong token over HTTP"),
		misnamed:   line("a client asked over HTTP for an unknown host (http.hosts)"),
		unreadable: line("cannot read an HTTP token or certificate: refusing clients that need it"),
		muttered:   line("an HTTP connection failed"),
	}
}

// tellAll tells what was left out of the log, until ctx ends.
func (c complaints) tellAll(ctx context.Context) {
	tick := time.NewTicker(lineWindow / 2)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
		for _, l := range []*loglimit.Line{c.tooMany, c.wrong, c.misnamed, c.unreadable, c.muttered} {
			l.Tell()
		}
	}
}

// mutter takes what net/http logs of connections, a line for each that fails.
type mutter struct{ line *loglimit.Line }

func (m mutter) Write(p []byte) (int, error) {
	const longest = 200
	text := p
	if len(text) > longest {
		text = text[:longest]
	}
	m.line.Say("net/http", "error", string(text))
	return len(p), nil
}
