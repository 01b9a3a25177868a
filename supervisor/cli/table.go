package cli

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"understudy/supervisor/printable"
)

// column of a table. One that shrinks loses the middle of what it says when the line is full: names differ at their ends.
// One that wraps is broken into lines.
type column struct {
	head           string
	right          bool
	shrinks, wraps bool
}

// row of a table, and what is to be said about it below.
type row struct {
	cells   []string
	colours []colour // of the cells, as far as they have any
	notes   []string
}

// writeTable prints a table that fits the screen.
func writeTable(w io.Writer, s screen, columns []column, rows []row) error {
	for _, r := range rows {
		for i, cell := range r.cells {
			r.cells[i] = printable.Text(strings.ReplaceAll(cell, "\n", " "))
		}
	}
	t := table{screen: s, columns: columns, widths: fit(s.width, columns, rows)}
	heads := make([]string, len(columns))
	for i, c := range columns {
		heads[i] = c.head
	}
	t.row(row{cells: heads})
	for _, r := range rows {
		if len(r.cells) > 0 {
			t.row(r)
		}
		for _, note := range r.notes {
			t.text.WriteString(note + "\n")
		}
	}
	_, err := io.WriteString(w, t.text.String())
	return err
}

// between columns is so much space.
const between = 2

// fit gives each column what it needs, and takes away what is too much where it does the least harm.
func fit(width int, columns []column, rows []row) []int {
	widths := make([]int, len(columns))
	total := between * (len(columns) - 1)
	for i, c := range columns {
		widths[i] = len(c.head)
		for _, r := range rows {
			if i < len(r.cells) {
				widths[i] = max(widths[i], utf8.RuneCountInString(r.cells[i]))
			}
		}
		total += widths[i]
	}
	for _, step := range []struct {
		least int
		of    func(column) bool
	}{
		{24, func(c column) bool { return c.wraps }}, {8, func(c column) bool { return c.shrinks }},
		{10, func(c column) bool { return c.wraps }},
	} {
		for total > width {
			widest := -1
			for i, c := range columns {
				if step.of(c) && widths[i] > max(step.least, len(c.head)) && (widest < 0 || widths[i] > widths[widest]) {
					widest = i
				}
			}
			if widest < 0 {
				break
			}
			widths[widest]--
			total--
		}
	}
	return widths
}

// table is a table that is being written.
type table struct {
	screen
	columns []column
	widths  []int
	text    strings.Builder
}

func (t *table) row(r row) {
	cells := make([][]string, len(t.columns)) // the lines of each
	height := 1
	for i, c := range t.columns {
		cells[i] = []string{r.cells[i]}
		if c.wraps {
			cells[i] = wrap(r.cells[i], t.widths[i])
		} else if c.shrinks {
			cells[i][0] = shorten(r.cells[i], t.widths[i])
		}
		height = max(height, len(cells[i]))
	}
	for n := range height {
		var line strings.Builder
		blank := 0 // before the next cell
		for i, c := range t.columns {
			cell := ""
			if n < len(cells[i]) {
				cell = cells[i][n]
			}
			pad := t.widths[i] - utf8.RuneCountInString(cell)
			if c.right {
				blank, pad = blank+pad, 0
			}
			if cell != "" { // what is blank at the end of a line is left out
				colour := plain
				if i < len(r.colours) {
					colour = r.colours[i]
				}
				line.WriteString(strings.Repeat(" ", blank) + t.paint(colour, cell))
				blank = 0
			}
			blank += pad + between
		}
		t.text.WriteString(line.String() + "\n")
	}
}

// shorten takes out the middle of what is too long.
func shorten(s string, width int) string {
	r := []rune(s)
	if len(r) <= width || width < 3 {
		return s
	}
	head := width / 2
	return string(r[:head]) + "…" + string(r[len(r)-(width-head-1):])
}

// wrap breaks a text into lines, at spaces where there are any.
func wrap(s string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(printable.Text(s)) {
		for utf8.RuneCountInString(word) > width {
			if line != "" {
				lines = append(lines, line)
				line = ""
			}
			r := []rune(word)
			lines, word = append(lines, string(r[:width])), string(r[width:])
		}
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}

// note is a text below a row, indented.
func note(width int, text string) []string {
	lines := wrap(text, width-2)
	for i := range lines {
		lines[i] = "  " + lines[i]
	}
	return lines
}

// command is a command to be copied: what does not fit the line goes on as a shell expects it.
func command(width int, words ...string) []string {
	line := "    " + printable.Text(words[0])
	var lines []string
	for _, word := range words[1:] {
		word = printable.Text(word)
		if len(line)+1+len(word)+2 > width {
			lines = append(lines, line+" \\")
			line = "      " + word
			continue
		}
		line += " " + word
	}
	return append(lines, line)
}

// ago tells a duration as a person would, to two units.
func ago(d time.Duration) string {
	d = max(d, 0)
	day := 24 * time.Hour
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%02dh", d/day, d%day/time.Hour)
}

// since is ago for a time that may be unknown.
func since(t *time.Time, now time.Time) string {
	if t == nil {
		return "-"
	}
	return ago(now.Sub(*t))
}

// brief tells a short duration with the precision that matters.
func brief(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return ago(d)
}
