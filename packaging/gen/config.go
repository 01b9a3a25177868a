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
	var columns []string
	lines := joined(doc)
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
		case strings.HasPrefix(line, "# "), strings.HasPrefix(line, "<!--"), strings.HasPrefix(line, "| ---"):
		case head:
			columns = cells(line)
		case strings.HasPrefix(line, "### "):
			fmt.Fprintf(p, ".SS %s\n", escape(line[4:]))
		case strings.HasPrefix(line, "## "):
			p.section(strings.ToUpper(escape(line[3:])))
		case strings.HasPrefix(line, "| "):
			keys++
			p.row(columns, cells(line))
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
	p.section("FILES")
	p.item(`\fB`+escape(docDir)+`\fP`,
		"The folders `examples`, `packaging`, and `docs` with the pages that this one refers to, such as [install.md].")
	p.section("SEE ALSO")
	fmt.Fprintln(p, bold("understudy", 1)+", "+bold("understudy-run", 1)+", "+bold("understudy-check", 1))
	return tidy(p.String()), nil
}

// joined are the lines of a page, with each paragraph, and each item of a list, in one: links, code and emphasis go over line ends.
func joined(doc string) (lines []string) {
	block, open := false, false // open: the next line belongs to the last one
	for line := range strings.SplitSeq(doc, "\n") {
		fence := strings.HasPrefix(line, "```")
		plain := !block && !fence && line != "" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "|") &&
			!strings.HasPrefix(line, "<!--")
		if plain && open && !strings.HasPrefix(line, "- ") {
			lines[len(lines)-1] += " " + strings.TrimSpace(line)
		} else {
			lines = append(lines, line)
		}
		block, open = block != fence, plain
	}
	return lines
}

// cells are those of a table's line.
func cells(line string) []string {
	all := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|"), "|")
	for i := range all {
		all[i] = unlink(strings.TrimSpace(all[i]))
	}
	return all
}

// row is a line of a table: what its first cell names, and the others, each with the name of its column if there are several.
func (p *page) row(columns, cells []string) {
	if columns[0] == "key" {
		meaning := cells[2]
		if cells[1] != "" {
			meaning += " Default: " + cells[1] + "."
		}
		p.item(words(cells[0]), meaning)
		return
	}
	fmt.Fprintf(p, ".TP\n%s\n", words(cells[0]))
	for i, cell := range cells[1:] {
		if len(cells) > 2 {
			cell = columns[i+1] + ": " + cell
		}
		if i > 0 {
			p.WriteString(".br\n")
		}
		fmt.Fprintln(p, words(cell))
	}
}

var link = regexp.MustCompile(`\[([^\]]*)\]\(([^)#]*)[^)]*\)`)

// unlink leaves of a link its text, and the page that it leads to, unless that is this one or the text names it.
func unlink(line string) string {
	return link.ReplaceAllStringFunc(line, func(whole string) string {
		m := link.FindStringSubmatch(whole)
		if strings.Contains(m[2], m[1]) || m[2] == "" {
			return m[1]
		}
		return m[1] + " [" + m[2] + "]"
	})
}

var (
	emptyParagraphs = regexp.MustCompile(`(?m)^(\.PP\n)+(\.PP\n|\.S[HS] |\.IP |\.TP\n)`)
	firstParagraph  = regexp.MustCompile(`(?m)^(\.S[HS] .*\n)\.PP\n`)
)

// tidy drops paragraphs that have nothing in them.
func tidy(text string) string {
	return firstParagraph.ReplaceAllString(emptyParagraphs.ReplaceAllString(text, "$2"), "$1")
}
