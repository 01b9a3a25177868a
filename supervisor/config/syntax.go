package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// parse gives the root of the only document, nil when there is nothing in it, or the fault that keeps src from being YAML: the parser stops
// at the first one.
func parse(src []byte) (*yaml.Node, *Fault) {
	if fault := unreadable(src); fault != nil {
		return nil, fault
	}
	if line := section(src); line > 0 {
		return nil, &Fault{
			Line: line, Column: 1,
			Message: "not YAML, but INI, TOML or a unit file. `understudy import UNIT` prints the config of a systemd unit",
		}
	}
	docs, err := documents(src)
	if at := conflict.FindIndex(src); err != nil && at != nil {
		return nil, &Fault{
			Line: 1 + bytes.Count(src[:at[0]], []byte("\n")), Column: 1,
			Message: "not YAML: git left a merge conflict here. Keep one side, and remove the lines <<<<<<<, ======= and >>>>>>>",
		}
	}
	if err != nil {
		line, said := whereSaid(err)
		line = faultyLine(src, line)
		blank, text := indentation(src, line)
		if tab := bytes.IndexByte(blank, '\t'); tab >= 0 {
			return nil, &Fault{Line: line, Column: tab + 1, Message: "not YAML: a tab: indent with spaces"}
		}
		for _, n := range []int{line, line - 1} { // which the parser may take for a part of the next one
			blank, text := indentation(src, n)
			if m := noSpace.FindSubmatch(text); m != nil && (means[entry](string(m[1])) || means[document](string(m[1]))) {
				return nil, &Fault{Line: n, Column: len(blank) + 1, Message: fmt.Sprintf("not YAML: write a space after %s:", m[1])}
			}
		}
		column := 1 // of a line that is blank
		if len(text) > 0 {
			column += len(blank)
		}
		quote := said == "found unexpected end of stream"
		if quote || strings.HasPrefix(said, "did not find expected ','") {
			if line, column, opener := unclosed(src, quote); opener != 0 {
				what := strconv.Quote(string(opener))
				if quote {
					what = "a quote"
				}
				return nil, &Fault{Line: line, Column: column, Message: fmt.Sprintf("not YAML: %s is opened here and never closed", what)}
			}
		}
		if plain, at, ok := misread(said, text); ok {
			said, column = plain, column+at
		}
		if plain, ok := parserWords[said]; ok {
			said = plain
		}
		return nil, &Fault{Line: line, Column: column, Message: "not YAML: " + said}
	}
	if len(docs) > 1 {
		second := docs[1]
		return nil, &Fault{
			Line: max(second.Line, 1), Column: max(second.Column, 1),
			Message: "a second document: a file holds one, remove what follows the line ---",
		}
	}
	if len(docs) == 0 || len(docs[0].Content) == 0 || isNull(docs[0].Content[0]) {
		return nil, nil // nothing is no fault of the syntax
	}
	return docs[0].Content[0], nil
}

// unreadable finds the first character that no YAML file may hold.
func unreadable(src []byte) *Fault {
	line, column := 1, 1
	if head := string(src[:min(len(src), 2)]); head == "\xff\xfe" || head == "\xfe\xff" || strings.Contains(head, "\x00") {
		return &Fault{Line: 1, Column: 1, Message: "the file is in UTF-16: save it as UTF-8, or convert it with iconv -f UTF-16 -t UTF-8"}
	}
	for rest := src; len(rest) > 0; column++ {
		r, size := utf8.DecodeRune(rest)
		switch {
		case r == utf8.RuneError && size == 1:
			return &Fault{Line: line, Column: column, Message: fmt.Sprintf("not UTF-8: the byte 0x%02x begins no character", rest[0])}
		case r == '\n':
			line, column = line+1, 0
		case r < ' ' && r != '\t' && r != '\r', r == 0x7f:
			return &Fault{Line: line, Column: column, Message: fmt.Sprintf("not YAML: the control character 0x%02x", r)}
		}
		rest = rest[size:]
	}
	return nil
}

var conflict = regexp.MustCompile(`(?m)^<{7} `)

var sections = regexp.MustCompile(`^\[[A-Za-z][\w.: -]*\]\s*$`)

// section is the line of a file's first text, if that is the head of a section: there are none in YAML.
func section(src []byte) int {
	n := 0
	for line := range bytes.Lines(src) {
		n++
		if text := bytes.TrimSpace(line); len(text) > 0 && text[0] != '#' && text[0] != ';' {
			if sections.Match(text) {
				return n
			}
			return 0
		}
	}
	return 0
}

// parserWords are the parser's complaints in an operator's words.
var parserWords = map[string]string{
	"did not find expected key":                      "a key is expected here: does the indentation fit the lines above?",
	"did not find expected '-' indicator":            "a list item is expected here: does the indentation fit the lines above?",
	"mapping values are not allowed in this context": `": " cannot stand here: quote the value, or correct the indentation`,
	"could not find expected ':'":                    "a key without a colon: write KEY: VALUE",
}

var (
	noAnchor = regexp.MustCompile(`^unknown anchor '(.+)' referenced$`)
	noSpace  = regexp.MustCompile(`^([a-z_]+):[^\s/]`)
	noValue  = regexp.MustCompile("(?:^|[:,[{-])[ \t]*([@`%])") // what no value may begin with
)

// misread is a complaint about one word of a line, in an operator's words, and where that stands. It does not show the word, which may be
// a secret.
func misread(said string, line []byte) (plain string, at int, ok bool) {
	if m := noAnchor.FindStringSubmatch(said); m != nil {
		return "quote the value: * begins an alias, and no & defines it", max(bytes.Index(line, []byte("*"+m[1])), 0), true
	}
	if m := noValue.FindSubmatchIndex(line); m != nil && said == "found character that cannot start any token" {
		return fmt.Sprintf("quote the value: %s cannot begin one", line[m[2]:m[3]]), m[2], true
	}
	return "", 0, false
}

// unclosed finds the bracket or brace, or the quote, opened where a value may begin, that is closed nowhere; the innermost of several.
func unclosed(src []byte, quotes bool) (line, column int, opener byte) {
	type opening struct {
		line, column int
		opener       byte
	}
	var open []opening
	line, column = 1, 0
	var started opening            // the newest quote
	var quote, last byte = 0, '\n' // last: the newest character that is no blank
	for i, c := range src {
		column++
		if c == '\n' {
			line, column = line+1, 0
		}
		switch {
		case quote != 0:
			if c == quote && (quote == '\'' || i == 0 || src[i-1] != '\\') {
				quote = 0
			}
		case c == '#' && (i == 0 || strings.ContainsRune(" \t\n", rune(src[i-1]))):
			quote = '\n' // up to the end of the line
		case (c == '"' || c == '\'') && strings.IndexByte(":-,[{\n", last) >= 0:
			quote, started = c, opening{line, column, c}
		case (c == '[' || c == '{') && strings.IndexByte(":-,[{\n", last) >= 0:
			open = append(open, opening{line, column, c})
		case (c == ']' || c == '}') && len(open) > 0:
			top := open[len(open)-1]
			if c-top.opener != 2 { // as in ASCII
				return top.line, top.column, top.opener
			}
			open = open[:len(open)-1]
		}
		if c != ' ' && c != '\t' {
			last = c
		}
	}
	switch {
	case quotes && (quote == '"' || quote == '\''):
		return started.line, started.column, started.opener
	case quotes || len(open) == 0:
		return 0, 0, 0
	}
	innermost := open[len(open)-1]
	return innermost.line, innermost.column, innermost.opener
}

// indentation is what a line begins with, and what follows.
func indentation(src []byte, line int) (blank, rest []byte) {
	lines := bytes.Split(src, []byte("\n"))
	if line < 1 || line > len(lines) {
		return nil, nil
	}
	text := lines[line-1]
	rest = bytes.TrimLeft(text, " \t")
	return text[:len(text)-len(rest)], rest
}

// documents reads at most two: the second is a fault, whatever it holds.
func documents(src []byte) (docs []*yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil { // the parser is not ours, and a file must never bring a supervisor down
			err = fmt.Errorf("yaml: the parser gave up: %v", r)
		}
	}()
	decoder := yaml.NewDecoder(bytes.NewReader(src))
	for len(docs) < 2 {
		var doc yaml.Node
		err := decoder.Decode(&doc)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		docs = append(docs, &doc)
	}
	return docs, nil
}

var saidLine = regexp.MustCompile(`^line (\d+): `)

// whereSaid takes the line out of the parser's message; 0 when it names none.
func whereSaid(err error) (line int, said string) {
	said = strings.TrimPrefix(err.Error(), "yaml: ")
	if m := saidLine.FindStringSubmatch(said); m != nil {
		line, _ = strconv.Atoi(m[1])
		said = said[len(m[0]):]
	}
	return line, said
}

// faultyLine finds the line that breaks the syntax. The parser names the start of the block around it, or nothing; the
// line after the longest part that can be read is closer. Parts may be broken only because they end inside a list or a
// quote, so a break that heals within the next lines is passed over.
func faultyLine(src []byte, said int) int {
	const heals = 100
	budget := min(max(32, 16<<20/(len(src)+1)), 500) // a file may be long, and broken in many places
	lines := bytes.SplitAfter(src, []byte("\n"))
	ends := make([]int, len(lines)+1)
	for i, line := range lines {
		ends[i+1] = ends[i] + len(line)
	}
	reads := func(k int) bool {
		budget--
		_, err := documents(src[:ends[k]])
		return err == nil
	}
	good, bad := 0, len(lines)
search:
	for {
		for bad-good > 1 {
			if middle := (good + bad) / 2; reads(middle) {
				good = middle
			} else {
				bad = middle
			}
		}
		for k := bad + 1; k < min(bad+heals, len(lines)) && budget > 0; k++ {
			if reads(k) {
				good, bad = k, len(lines)
				continue search
			}
		}
		return min(max(bad, said), len(lines))
	}
}
