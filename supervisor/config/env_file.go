package config

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"understudy/supervisor/safefile"
)

// ReadEnvFile reads a file of KEY=VALUE lines in the syntax of systemd's EnvironmentFile: blank lines and those that start
// with # or ; are left out, a value may be in single or double quotes, a backslash quotes, and one at the end of a line
// continues it. Nothing is expanded. The result is KEY=VALUE in the order of the file, of a repeated KEY the last one.
// What is wrong comes as Faults, all at once; systemd would skip such a line.
// who is the user of the program that it is for.
func ReadEnvFile(name string, who safefile.Who) ([]string, error) {
	src, err := readAs(name, who)
	if err != nil {
		return nil, Faults{{File: name, Message: "cannot be read: " + err.Error()}}
	}
	return parseEnv(name, src)
}

// envParser walks through a file byte by byte.
type envParser struct {
	name   string
	src    []byte
	at     int
	line   int
	faults Faults
	env    []string
	seen   map[string]int // where in env a key is
}

func parseEnv(name string, src []byte) ([]string, error) {
	p := &envParser{name: name, src: bytes.TrimPrefix(src, []byte("\xef\xbb\xbf")), line: 1, seen: map[string]int{}}
	for p.at < len(p.src) {
		p.entry()
	}
	if len(p.faults) > 0 {
		return nil, p.faults
	}
	return slices.DeleteFunc(p.env, func(pair string) bool { return pair == "" }), nil
}

func (p *envParser) fault(line int, key, format string, args ...any) {
	if len(p.faults) < mostFaults {
		p.faults = append(p.faults, Fault{File: p.name, Line: line, Column: 1, Key: key, Message: fmt.Sprintf(format, args...)})
	}
}

// entry reads a line, or several that belong together.
func (p *envParser) entry() {
	line := p.line
	rest := p.src[p.at:]
	end := bytes.IndexByte(rest, '\n')
	if end < 0 {
		end = len(rest)
	}
	text := strings.TrimLeft(string(rest[:end]), " \t\r")
	if text == "" || text[0] == '#' || text[0] == ';' {
		p.skipComment(end)
		return
	}
	key, _, isPair := strings.Cut(text, "=")
	key = strings.TrimRight(key, " \t")
	if !isPair {
		p.fault(line, "", "not a line of KEY=VALUE") // which is not shown: it may be part of a secret
		p.skip(end)
		return
	}
	p.at += bytes.IndexByte(rest, '=') + 1
	value, problem := p.value()
	switch {
	case problem != "":
		p.fault(line, shorten(key), "%s", problem)
	case strings.HasPrefix(key, "export "):
		p.fault(line, "", "%s: no shell reads this file: leave export out", quoted(key))
	case !envName.MatchString(key):
		p.fault(line, "", "%s is not a name for a variable: letters, digits and _ are allowed, and no digit at the start", quoted(key))
	case strings.ContainsRune(value, 0) || !utf8.ValidString(value):
		p.fault(line, key, "its value is not UTF-8 text without NUL characters")
	default:
		if i, again := p.seen[key]; again {
			p.env[i] = "" // the last one counts
		}
		p.seen[key] = len(p.env)
		p.env = append(p.env, key+"="+value)
	}
}

// skip passes over n bytes and the newline that follows them.
func (p *envParser) skip(n int) {
	p.at = min(p.at+n+1, len(p.src))
	p.line++
}

// skipComment passes over a comment, which a backslash at the end of its line continues.
func (p *envParser) skipComment(n int) {
	for continued := true; continued && p.at < len(p.src); {
		continued = n > 0 && p.src[p.at+n-1] == '\\'
		p.skip(n)
		if n = bytes.IndexByte(p.src[p.at:], '\n'); n < 0 {
			n = len(p.src) - p.at
		}
	}
}

// value reads what follows the =, to the end of its last line. Blanks around it are dropped, quoted ones are kept.
func (p *envParser) value() (value, problem string) {
	var out strings.Builder
	begun := false // the unquoted text: a quote within it is a character like others
	kept := 0      // up to here nothing is trimmed
	for p.at < len(p.src) {
		c := p.src[p.at]
		p.at++
		switch {
		case c == '\n':
			p.line++
			return trimBlank(out.String(), kept), ""
		case !begun && (c == '\'' || c == '"'):
			if problem := p.quoted(c, &out); problem != "" {
				return "", problem
			}
			kept = out.Len()
		case c == '\\' && p.at < len(p.src):
			next := p.src[p.at]
			p.at++
			begun = true
			if next == '\n' {
				p.line++
				continue
			}
			out.WriteByte(next)
			kept = out.Len()
		case !begun && (c == ' ' || c == '\t' || c == '\r'):
		default:
			out.WriteByte(c)
			begun = true
		}
	}
	return trimBlank(out.String(), kept), ""
}

func trimBlank(text string, kept int) string {
	return text[:kept] + strings.TrimRight(text[kept:], " \t\r")
}

// quoted reads to the closing quote. Between double quotes a backslash quotes " \ ` $ and joins lines.
func (p *envParser) quoted(quote byte, out *strings.Builder) (problem string) {
	line := p.line
	for p.at < len(p.src) {
		c := p.src[p.at]
		p.at++
		switch {
		case c == quote:
			return ""
		case quote == '"' && c == '\\' && p.at < len(p.src):
			next := p.src[p.at]
			p.at++
			switch {
			case next == '\n':
				p.line++
			case strings.IndexByte("\"\\`$", next) >= 0:
				out.WriteByte(next)
			default:
				out.WriteByte('\\')
				out.WriteByte(next)
			}
			continue
		case c == '\n':
			p.line++
		}
		out.WriteByte(c)
	}
	return fmt.Sprintf("the quote (%c) that opens on line %d is not closed", quote, line)
}
