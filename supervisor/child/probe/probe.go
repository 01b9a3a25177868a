package probe

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"unicode"
)

// Kind is how a probe looks at a program.
type Kind string

// The kinds of probes.
const (
	KindTCP  Kind = "tcp"  // something accepts a connection
	KindHTTP Kind = "http" // a GET is answered by 2xx or 3xx
	KindExec Kind = "exec" // a command ends with 0
)

// Runner runs a command, ends it and all that it forked when ctx ends, and returns the last of its output and its exit
// code. An error means that it could not be run, or not to its end.
type Runner func(ctx context.Context, argv []string) (output []byte, code int, err error)

// Probe is one way to look.
type Probe struct {
	Kind   Kind
	Target string   // tcp: host:port; http: a URL
	Method string   // of an order over http, which only 2xx answers; "": it is a look
	Token  int64    // of an order
	Argv   []string // exec
	Run    Runner   // exec
}

const (
	maxBody   = 64 << 10
	maxReason = 200
)

// String is how messages call the probe.
func (p Probe) String() string {
	if p.Kind == KindExec {
		return "exec"
	}
	return string(p.Kind) + " " + p.Target
}

// Check looks once. nil: all is well. What the probe is about was checked with the config.
func (p Probe) Check(ctx context.Context) error {
	look := map[Kind]func(context.Context) error{KindTCP: p.connect, KindHTTP: p.get, KindExec: p.execute}[p.Kind]
	err := look(ctx)
	if err == nil {
		return nil
	}
	return &failure{p.String() + ": " + reason(ctx, err), err}
}

// failure has a text of one line, whatever it was made from.
type failure struct {
	text string
	err  error
}

func (f *failure) Error() string { return f.text }

func (f *failure) Unwrap() error { return f.err }

// reason puts an error into an operator's words.
func reason(ctx context.Context, err error) string {
	var dns *net.DNSError
	var errno syscall.Errno
	var timeout interface{ Timeout() bool }
	var said *failure
	switch {
	case errors.As(err, &said):
		return oneLine(said.text)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "no answer in time"
	case ctx.Err() != nil:
		return oneLine(context.Cause(ctx).Error())
	case errors.As(err, &dns):
		return oneLine("host " + dns.Name + ": " + dns.Err)
	case errors.As(err, &errno):
		return errno.Error()
	case errors.As(err, &timeout) && timeout.Timeout():
		return "no answer in time"
	}
	if inner, ok := errors.AsType[*url.Error](err); ok {
		err = inner.Err
	}
	return oneLine(err.Error())
}

// oneLine makes a text fit for a log, whatever a program put into it.
func oneLine(text string) string {
	text = strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?")))
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + "..."
	}
	return text
}

func (p Probe) connect(ctx context.Context) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.Target)
	if err != nil {
		return err
	}
	return conn.Close()
}

// get asks over a connection of its own, so that it is the program's accepting that is looked at.
func (p Probe) get(ctx context.Context) error {
	transport := &http.Transport{DisableKeepAlives: true, DialContext: (&net.Dialer{}).DialContext, MaxResponseHeaderBytes: maxBody}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: func(to *http.Request, via []*http.Request) error {
		switch {
		case to.URL.Host != via[0].URL.Host, p.Method != "":
			return http.ErrUseLastResponse // 3xx is an answer; nobody else is asked
		case len(via) >= 10:
			return errors.New("it redirects endlessly")
		}
		return nil
	}}
	request, err := http.NewRequestWithContext(ctx, cmp.Or(p.Method, http.MethodGet), p.Target, http.NoBody)
	if err != nil {
		return err
	}
	most := 399
	if p.Method != "" {
		most = 299
		request.Header.Set("Understudy-Token", strconv.FormatInt(p.Token, 10))
	}
	request.Header.Set("User-Agent", "understudy")
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode < 200 || answer.StatusCode > most {
		said, _ := io.ReadAll(io.LimitReader(answer.Body, maxBody))
		return fmt.Errorf("status %d%s", answer.StatusCode, LastLine(said))
	}
	return nil
}

func (p Probe) execute(ctx context.Context) error {
	output, code, err := p.Run(ctx, p.Argv)
	switch {
	case err != nil && ctx.Err() != nil:
		return &failure{"it did not end in time and was killed" + LastLine(output), err}
	case err != nil:
		return err
	case code != 0:
		return fmt.Errorf("exit code %d%s", code, LastLine(output))
	}
	return nil
}

// LastLine is the last thing said, for the end of a message.
func LastLine(output []byte) string {
	for lines := bytes.Split(output, []byte("\n")); len(lines) > 0; lines = lines[:len(lines)-1] {
		if line := oneLine(string(lines[len(lines)-1])); line != "" {
			return ": " + line
		}
	}
	return ""
}
