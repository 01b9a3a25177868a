package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// configPage is understudy.yaml(5): docs/config.md, of whose Markdown it knows what is used there.
func (a about) configPage(doc string) (string, error) {
	p := &page{}
	p.head(a, "understudy.yaml", 5)
	p.section("NAME")
	p.WriteString("understudy.yaml \\- what one Understudy supervisor runs\n")
	p.section("DESCRIPTION")
	keys := 0
	block := "" // of the lines that stand as they are
	lines := strings.Split(doc, "\n")
	for i, line := range lines {
		head := i+1 < len(lines) && strings.HasPrefix(lines[i+1], "| ---") // of a table
		fence := strings.HasPrefix(line, "```")
		switch {
		case fence && block == "":
			block = ".PP\n.RS 2\n.nf\n"
			p.WriteString(block)
		case fence:
			block = ""
			p.WriteString(".fi\n.RE\n.PP\n")
		case block != "":
			fmt.Fprintln(p, escape(line))
		case strings.HasPrefix(line, "# "), strings.HasPrefix(line, "<!--"), strings.HasPrefix(line, "| ---"), head:
		case strings.HasPrefix(line, "### "):
			fmt.Fprintf(p, ".SS %s\n", escape(line[4:]))
		case strings.HasPrefix(line, "## "):
			p.section(strings.ToUpper(escape(line[3:])))
		case strings.HasPrefix(line, "| "):
			keys++
			p.row(line)
		case strings.HasPrefix(line, "- "):
			fmt.Fprintf(p, ".IP \\(bu 2\n%s\n", words(unlink(line[2:])))
		case line == "":
			p.WriteString(".PP\n")
		default:
			fmt.Fprintln(p, words(unlink(line)))
		}
	}
	if keys < 50 || block != "" {
		return "", errors.New("docs/config.md has an unexpected form")
	}
	p.section("SEE ALSO")
	fmt.Fprintln(p, bold("understudy", 1)+", "+bold("understudy-run", 1)+", "+bold("understudy-check", 1))
	return tidy(p.String()), nil
}

// row is a line of a table: what its first cell names, and what the others say of it.
func (p *page) row(line string) {
	cells := strings.Split(strings.Trim(line, "| "), "|")
	for i := range cells {
		cells[i] = unlink(strings.TrimSpace(cells[i]))
	}
	if len(cells) == 3 && strings.HasPrefix(cells[0], "`") && cells[1] != "" && !strings.Contains(cells[1], "UNDERSTUDY") {
		cells = []string{cells[0], cells[2] + " Default: " + cells[1] + "."}
	}
	var rest []string
	for _, cell := range cells[1:] {
		if cell != "" {
			rest = append(rest, cell)
		}
	}
	p.item(words(cells[0]), strings.Join(rest, ": "))
}

var link = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// unlink leaves of a link what it says.
func unlink(line string) string { return link.ReplaceAllString(line, "$1") }

var (
	emptyParagraphs = regexp.MustCompile(`(?m)^(\.PP\n)+(\.PP\n|\.S[HS] |\.IP |\.TP\n)`)
	firstParagraph  = regexp.MustCompile(`(?m)^(\.S[HS] .*\n)\.PP\n`)
)

// tidy drops paragraphs that have nothing in them.
func tidy(text string) string {
	return firstParagraph.ReplaceAllString(emptyParagraphs.ReplaceAllString(text, "$2"), "$1")
}
