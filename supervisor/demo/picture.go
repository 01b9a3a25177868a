package demo

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"understudy/election"
	"understudy/supervisor/wait"
)

const (
	slice     = 250 * time.Millisecond // what one character of the picture stands for
	drawEvery = 125 * time.Millisecond
	nameWidth = 8
	wordWidth = 28
)

// ink is what the picture is made of.
type ink struct {
	runs, waits, frozen, cut string
	green, faint, plain      string
}

func newInk() ink {
	i := ink{runs: "#", waits: ".", frozen: "=", cut: "/"}
	words := strings.ToLower(cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_CTYPE"), os.Getenv("LANG")))
	if strings.Contains(words, "utf-8") || strings.Contains(words, "utf8") {
		i = ink{runs: "█", waits: "·", frozen: "=", cut: "/"}
	}
	if os.Getenv("NO_COLOR") == "" {
		i.green, i.faint, i.plain = "\x1b[32m", "\x1b[2m", "\x1b[0m"
	}
	return i
}

// picture is a line for each node: where the program ran in the last seconds, and what the node is now.
type picture struct {
	ink
	stage   *stage
	screen  *screen
	caption func() string
	pids    bool
}

// show draws until ctx ends; where nothing can be drawn, it says who becomes active.
func (p *picture) show(ctx context.Context) {
	defer func() { p.screen.draw(p.lines(p.screen.width())) }()
	var told life
	for {
		p.screen.draw(p.lines(p.screen.width()))
		if l, ok := newest(p.stage.lives()); ok && !p.screen.live() && l.first != told.first {
			told = l
			p.screen.say("  the program runs on %s (token %d)", l.node, l.token)
		}
		if !wait.For(ctx, drawEvery) {
			return
		}
	}
}

func (p *picture) lines(width int) []string {
	width = min(width, 80)
	strip := max(width-2-nameWidth-2-wordWidth-1, 8)
	lives, end := p.stage.lives(), now()
	end -= end % slice // characters move as wholes
	lines := []string{""}
	for _, n := range p.stage.nodes {
		line := fmt.Sprintf("  %-*s", nameWidth, n.name) + p.strip(n, lives, end, strip) + "  " + p.word(n, lives)
		lines = append(lines, line)
	}
	past := fmt.Sprintf("%v ago", (time.Duration(strip) * slice).Round(time.Second))
	axis := strings.Repeat(" ", 2+nameWidth) + past + strings.Repeat(" ", max(strip-utf8.RuneCountInString(past)-3, 1)) + "now"
	return append(lines, p.faint+axis+p.plain, "", clip(p.caption(), width))
}

// strip is a node's last seconds. A slice of time is the program's where it ran at its middle.
func (p *picture) strip(n *node, lives []life, end time.Duration, length int) string {
	var b strings.Builder
	color := ""
	for i := range length {
		t := end - time.Duration(length-i)*slice + slice/2
		mark, paint := p.waits, p.faint
		switch n.was(t) {
		case stopped, killed:
			mark = " "
		case frozen:
			mark = p.frozen
		case cutOff:
			mark = p.cut
		}
		for _, l := range lives {
			if l.node == n.name && l.first <= t && t <= l.last {
				mark, paint = p.runs, p.green
			}
		}
		if paint != color {
			b.WriteString(p.plain + paint)
			color = paint
		}
		b.WriteString(mark)
	}
	b.WriteString(p.plain)
	return b.String()
}

// word says what a node is now.
func (p *picture) word(n *node, lives []life) string {
	role := p.stage.role(n.name)
	word := string(role)
	l, ok := newest(lives)
	is := n.was(now())
	switch {
	case ok && l.node == n.name && now()-l.last < slice:
		word = fmt.Sprintf("ACTIVE token %d", l.token)
		if is != up {
			word = "runs, " + is.String()
		}
	case is != up:
		word = is.String()
	case role == "" || role == election.RoleActive:
		word = "joining"
	}
	if p.pids && n.running() {
		word = fmt.Sprintf("%-18s pid %d", word, n.pid())
	}
	return clip(word, wordWidth)
}

func clip(s string, width int) string {
	if r := []rune(s); len(r) > width {
		return string(r[:max(width, 0)])
	}
	return s
}
