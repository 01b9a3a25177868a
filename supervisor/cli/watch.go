package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"understudy/election"
	"understudy/supervisor/control"
	"understudy/supervisor/printable"
)

// watchEvery is how often ZooKeeper is asked, and late after what time its answers are missed.
const (
	watchEvery = time.Second
	late       = 2500 * time.Millisecond
)

// look is what came of asking once.
type look struct {
	status control.Status
	err    error
	at     time.Time
}

// watchStatus keeps the screen current until ctx ends. While ZooKeeper does not answer, the screen says so above the last status.
func (f *statusFlags) watchStatus(ctx context.Context, services []string) error {
	cfg, err := f.election()
	if err != nil {
		return err
	}
	looks, end := f.looking(ctx, cfg, services)
	defer end()

	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	signal.Ignore(syscall.SIGTSTP) // Ctrl-Z would leave the shell on this screen, without a cursor
	p := picture{began: time.Now(), paper: f.paper(screen{}, services), servers: strings.Join(cfg.Servers, ",")}
	fmt.Print(enterScreen)
	defer func() { fmt.Print(leaveScreen + p.text(screenOf(os.Stdout), time.Now())) }() // what was seen last stays
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		p.draw()
		select {
		case l := <-looks:
			p.take(l)
			if errors.Is(l.err, control.ErrUnknown) && p.seen.at.IsZero() {
				return l.err
			}
		case <-tick.C: // ages grow
		case <-resized:
		case <-ctx.Done():
			return nil
		}
	}
}

// printChanges is for readers without a screen: it prints the status, and again after each change.
func (f *statusFlags) printChanges(ctx context.Context, services []string) error {
	cfg, err := f.election()
	if err != nil {
		return err
	}
	looks, end := f.looking(ctx, cfg, services)
	defer end()
	known, trouble := "", ""
	for {
		var l look
		select {
		case l = <-looks:
		case <-ctx.Done():
			return nil
		}
		if errors.Is(l.err, control.ErrUnknown) && known == "" {
			return l.err
		}
		if l.err != nil {
			if said := l.err.Error(); said != trouble {
				trouble = said
				fmt.Fprintln(os.Stderr, "understudy:", printable.Text(said))
			}
			continue
		}
		trouble = ""
		now, err := json.Marshal(f.from(l.status))
		if err != nil || string(now) == known {
			continue
		}
		var text bytes.Buffer
		switch {
		case f.json:
			fmt.Fprintln(&text, string(printable.JSON(now)))
		case known != "":
			fmt.Fprintln(&text)
		}
		if !f.json {
			_ = writeStatus(&text, f.paper(screenOf(os.Stdout), services), l.status, l.at) // into memory
		}
		if _, err := os.Stdout.Write(text.Bytes()); err != nil {
			return err
		}
		known = string(now)
	}
}

// looking has what is seen sent until end is called.
func (f *statusFlags) looking(ctx context.Context, cfg election.Config, services []string) (_ <-chan look, end func()) {
	ctx, cancel := context.WithCancel(ctx)
	looks, done := make(chan look), make(chan struct{})
	go func() {
		defer close(done)
		f.lookAgain(ctx, cfg, services, looks)
	}()
	return looks, func() { cancel(); <-done }
}

// lookAgain looks every second over one connection, and over another one when it has failed.
func (f *statusFlags) lookAgain(ctx context.Context, cfg election.Config, services []string, looks chan<- look) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	tell := func(l look) {
		l.at = time.Now()
		select {
		case looks <- l:
		case <-ctx.Done():
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	for ctx.Err() == nil {
		err := f.connected(ctx, cfg, func(c *control.Cluster) error {
			for ctx.Err() == nil {
				bounded, cancel := context.WithTimeout(ctx, f.timeout)
				s, err := f.status(bounded, c, services)
				cancel()
				tell(look{status: s, err: f.explain(err)})
				if err != nil {
					break
				}
			}
			return nil
		})
		if err != nil {
			tell(look{err: err})
		}
	}
}

// What a terminal is told: an own screen without a cursor on which lines are cut and not broken, and everything back.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
	leaveScreen = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	// Between these a terminal that knows them shows nothing half-drawn.
	beginDrawing = "\x1b[?2026h"
	endDrawing   = "\x1b[?2026l"
)

// picture is what the screen shows.
type picture struct {
	began   time.Time
	paper   paper
	servers string
	seen    look  // the last that had a status
	trouble error // of the newest, if it had none
}

func (p *picture) take(l look) {
	p.trouble = l.err
	if l.err == nil {
		p.seen = l
	}
}

// draw replaces what is on the screen without a flicker: each line is written over the previous one.
func (p *picture) draw() {
	width, height := terminalSize(os.Stdout)
	lines := strings.Split(strings.TrimSuffix(p.text(screenOf(os.Stdout), time.Now()), "\n"), "\n")
	if more := len(lines) - height; more > 0 && height > 1 {
		lines = append(lines[:height-1], fmt.Sprintf("... %d more lines: name a service, or make the window higher", more+1))
	}
	for i, line := range lines {
		if visible(line) < width { // else there is nothing behind it, and its last sign would go
			lines[i] += "\x1b[K"
		}
	}
	fmt.Print(beginDrawing + "\x1b[H" + strings.Join(lines, "\r\n") + "\x1b[J" + endDrawing)
}

func (p *picture) text(to screen, now time.Time) string {
	var b bytes.Buffer
	b.WriteString(p.head(to, now))
	if !p.seen.at.IsZero() {
		on, s := p.paper, p.seen.status
		on.screen = to
		s.Services = slices.Clone(s.Services)
		slices.SortStableFunc(s.Services, func(a, b control.ServiceStatus) int { return cmp.Compare(severity(a), severity(b)) })
		_ = writeStatus(&b, on, s, now) // into memory
	}
	return b.String()
}

// head tells how old the picture is, when it is not current.
func (p *picture) head(to screen, now time.Time) string {
	asked := p.began
	if !p.seen.at.IsZero() {
		asked = p.seen.at
	}
	if p.trouble == nil && now.Sub(asked) < late {
		if p.seen.at.IsZero() {
			return "Asking ZooKeeper (" + p.servers + ") ...\n"
		}
		return now.Local().Format("15:04:05") + "  " + p.servers + "\n"
	}
	text := fmt.Sprintf("ZooKeeper (%s) has not answered for %s.", p.servers, ago(now.Sub(asked)))
	if !p.seen.at.IsZero() {
		text = fmt.Sprintf("OLD, as of %s: ZooKeeper (%s) has not answered for %s.", asked.Local().Format("15:04:05"), p.servers,
			ago(now.Sub(asked)))
	}
	if p.trouble != nil {
		text += " " + p.trouble.Error()
	}
	return strings.Join(to.paintAll(red, wrap(text, to.width)), "\n") + "\n\n"
}

// severity orders services by what is wrong with them, the worst first.
func severity(v control.ServiceStatus) int {
	switch {
	case v.Faulty():
		return 0
	case len(v.Problems) > 0:
		return 1
	}
	return 2
}
