// Command picture runs a command and prints what it printed, as it came, as an SVG that moves: make picture.
package main

import (
	"bufio"
	"fmt"
	"html"
	"log"
	"os"
	"os/exec"
	"strings"
	"time"
)

const (
	columns, rows = 80, 25
	wide, high    = 8, 17 // of a character, in pixels
	edge          = 14
	plays, rests  = 12.0, 4.0 // seconds
)

// line is one of the output, and when it came: as a share of the whole time.
type line struct {
	text string
	at   float64
}

func main() {
	log.SetFlags(0)
	if len(os.Args) < 2 {
		log.Fatal("usage: picture COMMAND [WORD...]")
	}
	lines, err := record(os.Args[1:])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(draw(lines))
}

// record runs a command. Empty lines that follow each other are one.
func record(words []string) (lines []line, err error) {
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	began := time.Now()
	for in := bufio.NewScanner(out); in.Scan(); {
		if in.Text() == "" && len(lines) > 0 && lines[len(lines)-1].text == "" {
			continue
		}
		lines = append(lines, line{in.Text(), time.Since(began).Seconds()})
	}
	if err := cmd.Wait(); err != nil {
		return nil, err
	}
	whole := time.Since(began).Seconds()
	for i := range lines {
		lines[i].at /= whole
	}
	return lines, nil
}

// draw has each line appear when it came, and begins again after a rest.
func draw(lines []line) string {
	var style, text strings.Builder
	row := 1 // the command is in the first one
	for _, l := range wrapped(lines) {
		row++
		if row > rows {
			break
		}
		share := 100 * plays * l.at / (plays + rests)
		fmt.Fprintf(&style, "@keyframes r%d{0%%,%.2f%%{opacity:0}%.2f%%,100%%{opacity:1}}\n", row, share, share+0.01)
		fmt.Fprintf(&text, "<text x=\"%d\" y=\"%d\" style=\"animation-name:r%d\">%s</text>\n",
			edge, edge+row*high-4, row, html.EscapeString(l.text))
	}
	width, height := 2*edge+columns*wide, 2*edge+rows*high
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" viewBox="0 0 %d %d" width="%d" height="%d">
<style>
text{font:13px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#e6edf3;white-space:pre;animation:%gs step-end infinite}
.typed{fill:#7ee787;animation:none}
@media (prefers-reduced-motion:reduce){text{animation:none}}
%s</style>
<rect width="100%%" height="100%%" rx="8" fill="#0d1117"/>
<text class="typed" x="%d" y="%d">$ understudy demo</text>
%s</svg>
`, width, height, width, height, plays+rests, style.String(), edge, edge+high-4, text.String())
}

// wrapped breaks lines between words, as a terminal does not.
func wrapped(lines []line) (all []line) {
	for _, l := range lines {
		for len(l.text) > columns {
			end := strings.LastIndex(l.text[:columns], " ")
			if end <= 0 {
				end = columns
			}
			all = append(all, line{l.text[:end], l.at})
			l.text = strings.TrimLeft(l.text[end:], " ")
		}
		all = append(all, l)
	}
	return all
}
