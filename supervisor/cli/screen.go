package cli

import (
	"cmp"
	"io"
	"os"
	"regexp"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// screen is what is written to.
type screen struct {
	width  int
	colour bool
}

// lineWidth is how wide lines are where no terminal says otherwise, and narrow what a table needs at least.
const (
	lineWidth = 80
	narrow    = 60
)

func screenOf(w io.Writer) screen {
	width := terminalWidth(w)
	term := os.Getenv("TERM")
	return screen{
		width:  max(cmp.Or(width, lineWidth), narrow),
		colour: width > 0 && os.Getenv("NO_COLOR") == "" && term != "" && term != "dumb",
	}
}

// colour is one of those that every terminal has, in the numbers that they have there.
type colour string

const (
	plain  colour = ""
	red    colour = "31"
	green  colour = "32"
	yellow colour = "33"
)

// paint colours a text. What it takes on the screen is not changed by that.
func (s screen) paint(c colour, text string) string {
	if !s.colour || c == plain || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// paintAll colours lines, each for itself.
func (s screen) paintAll(c colour, lines []string) []string {
	for i := range lines {
		lines[i] = s.paint(c, lines[i])
	}
	return lines
}

// painted is what paint adds.
var painted = regexp.MustCompile("\x1b\\[[0-9;]*m")

// visible is how many columns a painted line takes.
func visible(line string) int { return utf8.RuneCountInString(painted.ReplaceAllString(line, "")) }

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

// isTerminal reports whether somebody types into a file.
func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
