package printable

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text has a question mark for each character that is no text. Lines stay lines.
func Text(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
}

// JSON escapes what is not text in a JSON value, which stays the same value. encoding/json lets pass DEL, U+009B, with which a
// terminal's commands begin as well, and what turns the direction of writing.
func JSON(value []byte) []byte {
	odd := func(r rune) bool { return r != '\n' && r != '\t' && r != '\r' && !unicode.IsPrint(r) }
	if bytes.IndexFunc(value, odd) < 0 {
		return value
	}
	var out bytes.Buffer
	for _, r := range string(value) {
		switch {
		case !odd(r):
			out.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&out, `\u%04x\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.Bytes()
}

// JSONLines passes JSON on, one or more whole values at a time, as JSON shows it.
type JSONLines struct{ To io.Writer }

func (j JSONLines) Write(value []byte) (int, error) {
	if _, err := j.To.Write(JSON(value)); err != nil {
		return 0, err
	}
	return len(value), nil
}

// Lines passes the output of a program on as less(1) would show it: ^[ for ESC, and what is not UTF-8 in hexadecimal numbers. Lines
// and tabs stay as they are.
type Lines struct {
	To   io.Writer
	rest []byte // the beginning of a character, or a carriage return, whose end is to come
}

func (l *Lines) Write(text []byte) (int, error) {
	all := slices.Concat(l.rest, text)
	var out bytes.Buffer
	for len(all) > 0 {
		if all[0] == '\r' && len(all) == 1 || !utf8.FullRune(all) {
			break
		}
		r, size := utf8.DecodeRune(all)
		switch {
		case r == '\n' || r == '\t':
			out.WriteRune(r)
		case r == '\r' && all[1] == '\n': // how some end their lines
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&out, "<%02X>", all[0])
		case r < ' ' || r == 0x7f:
			out.WriteByte('^')
			out.WriteRune(r ^ 0x40)
		case !unicode.IsPrint(r):
			fmt.Fprintf(&out, "<U+%04X>", r)
		default:
			out.WriteRune(r)
		}
		all = all[size:]
	}
	l.rest = bytes.Clone(all)
	if _, err := l.To.Write(out.Bytes()); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Word is a text as one word of a command for a shell, which finds nothing in it to fill in.
func Word(text string) string {
	text = strings.ReplaceAll(Text(text), "\n", "?")
	if plain.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

var plain = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)
