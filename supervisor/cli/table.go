package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// lineWidth is how wide lines are where no terminal says otherwise.
const lineWidth = 80

// column of a table. One that may shrink loses the middle of what it says when the line is full: names differ at their
// ends. The last column is broken into lines instead.
type column struct {
	head    string
	right   bool
	shrinks bool
}

// row of a table, and what is to be said about it below.
type row struct {
	cells []string
	notes []string
}

// writeTable prints a table that fits the width.
func writeTable(w io.Writer, width int, columns []column, rows []row) error {
	widths := fit(width, columns, rows)
	var b strings.Builder
	heads := make([]string, len(columns))
	for i, c := range columns {
		heads[i] = c.head
	}
	writeRow(&b, columns, widths, heads)
	for _, r := range rows {
		if len(r.cells) > 0 {
			writeRow(&b, columns, widths, r.cells)
		}
		for _, note := range r.notes {
			b.WriteString(note + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

const between = 2 // columns

// fit gives each column what it needs, and takes from the widest that may shrink what is too much.
func fit(width int, columns []column, rows []row) []int {
	widths := make([]int, len(columns))
	for i, c := range columns {
		widths[i] = len(c.head)
		for _, r := range rows {
			if i < len(r.cells) {
				widths[i] = max(widths[i], utf8.RuneCountInString(r.cells[i]))
			}
		}
	}
	last := len(columns) - 1
	if columns[last].shrinks {
		widths[last] = min(widths[last], 24) // the least that can be read when it is broken into lines
	}
	for {
		total := between * last
		widest := -1
		for i, n := range widths {
			total += n
			if columns[i].shrinks && i != last && n > len(columns[i].head) && n > 8 && (widest < 0 || n > widths[widest]) {
				widest = i
			}
		}
		if total <= width || widest < 0 {
			if columns[last].shrinks {
				widths[last] = max(widths[last]+width-total, 8)
			}
			return widths
		}
		widths[widest]--
	}
}

func writeRow(b *strings.Builder, columns []column, widths []int, cells []string) {
	last := len(columns) - 1
	lines := []string{cells[last]}
	if columns[last].shrinks {
		lines = wrap(cells[last], widths[last])
	}
	for n, tail := range lines {
		var line strings.Builder
		for i := range last {
			cell := ""
			if n == 0 {
				cell = shorten(cells[i], widths[i])
			}
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if columns[i].right {
				cell = pad + cell
			} else {
				cell += pad
			}
			line.WriteString(cell + strings.Repeat(" ", between))
		}
		if columns[last].right {
			line.WriteString(strings.Repeat(" ", widths[last]-utf8.RuneCountInString(tail)))
		}
		b.WriteString(strings.TrimRight(line.String()+tail, " ") + "\n")
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
	for word := range strings.FieldsSeq(s) {
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
	line := "    " + words[0]
	var lines []string
	for _, word := range words[1:] {
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

// terminalSize is that of the terminal that w is, and zero when it is none.
func terminalSize(w io.Writer) (width, height int) {
	f, ok := w.(*os.File)
	if !ok {
		return 0, 0
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0
	}
	return cmp.Or(int(size.Col), lineWidth), cmp.Or(int(size.Row), 24)
}

func terminalWidth(w io.Writer) int {
	width, _ := terminalSize(w)
	return width
}

// widthOf is how wide a table may be.
func widthOf(w io.Writer) int { return max(cmp.Or(terminalWidth(w), lineWidth), 60) }
