package cli

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

func explainCommand(operations string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain WORDS",
		Short: "Tell what a symptom or a line of the log means, and what to do",
		Long: "Prints the rows of operations.md that fit best: what the words mean, and what to do. " +
			"The words may be a whole line of the log\n" +
			"or of `understudy status`, or a part of one.",
		Example: `  understudy explain "the program is not proved dead"`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(strings.Fields(strings.Join(args, " "))) == 0 {
				return usage("explain takes words of the log or of status")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			out := cmd.OutOrStdout()
			text := strings.Join(args, " ")
			found, sure := explained(operations, text)
			if !sure && logged.MatchString(text) {
				return errors.New("this line is not in docs/operations.md, which has all lines of WARN and ERROR: " +
					"one of INFO tells what is done, and needs nothing")
			}
			if len(found) == 0 {
				return errors.New("no row of docs/operations.md fits these words: give more of the line, or see `understudy status`; " +
					"flags and columns are explained by `--help` of their command")
			}
			if !sure {
				fmt.Fprint(out, "No row fits exactly. The closest:\n\n")
			}
			width := screenOf(os.Stdout).width
			for i, r := range found {
				if i > 0 {
					fmt.Fprintln(out)
				}
				for _, part := range []struct{ label, text string }{{"", r.what}, {r.head, r.means}, {"do", r.do}} {
					indent := ""
					if part.label != "" {
						indent = fmt.Sprintf("  %-9s", part.label+":")
					}
					for j, line := range wrap(part.text, width-len(indent)) {
						if j > 0 {
							indent = strings.Repeat(" ", len(indent))
						}
						fmt.Fprintln(out, indent+line)
					}
				}
			}
			return nil
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return usage("%w: words that look like a flag follow `--`, and `--help` of a command explains its flags", err)
	})
	return cmd
}

// explanation is a row of a table of operations.md; head is the title of its second column.
type explanation struct{ what, head, means, do string }

var (
	logged     = regexp.MustCompile(`\[(TRACE|DEBUG|INFO) *\]|: \w+=|"@message"`) // what lines of a log look like
	tableCells = regexp.MustCompile(` *\| *`)
	links      = regexp.MustCompile(`\[([^\]]*)\]\(([^)]*)\)`)
	// examples are what stands in a row for a node, a time or other words at the beginning or the end of a line.
	examples = regexp.MustCompile(`^n\d(?:, n\d)* | (?:n\d|\d+m\d+s|\.\.\.)(?: .*)?$`)
	telling  = regexp.MustCompile(`[\p{L}\p{N}]{4,}`) // words that are more than "the" and "is"
)

// explained are the rows with a literal that is in a text whole; sure is false for one that only shares the most words with it.
func explained(operations, text string) (best []explanation, sure bool) {
	text = strings.TrimSpace(strings.ToLower(text))
	said := telling.FindAllString(text, -1)
	most, head := 0.0, ""
	var above explanation
	for line := range strings.Lines(operations) {
		cells := tableCells.Split(strings.TrimSpace(line), -1)
		if len(cells) != 5 || cells[0] != "" || strings.HasPrefix(cells[1], "---") {
			continue
		}
		if cells[3] == "do" {
			head = cells[2]
			continue
		}
		row := explanation{plainText(cells[1]), head, sameAs(above.means, plainText(cells[2])), sameAs(above.do, plainText(cells[3]))}
		above = row
		score := 0.0
		for i, part := range strings.Split(strings.ToLower(cells[1]), "`") {
			score = max(score, likeness(text, said, part, i%2 == 1, i == 1))
		}
		if score > most {
			most, best = score, nil
		}
		if score == most && score > 0 {
			best = append(best, row)
		}
	}
	if most < certain {
		return best[:min(len(best), 1)], false
	}
	return best[:min(len(best), 3)], true
}

const (
	certain = 1000 // what is more than that is certain
	nearly  = 0.8  // so much of all words is in both
)

// likeness is how well a part of a row's first cell fits a text; literal: it is what the program prints; first: nothing is before it.
func likeness(text string, said []string, part string, literal, first bool) float64 {
	words := telling.FindAllString(part, -1)
	var shared []string
	for _, w := range words {
		if slices.Contains(said, w) {
			shared = append(shared, w)
		}
	}
	if len(shared) == 0 {
		return 0
	}
	within, all, asked := weight(shared), weight(words), weight(said)
	ratio := within / (all + asked - within)
	exact := examples.ReplaceAllString(part, "")
	rest, begins := strings.CutPrefix(part, text)
	switch {
	case literal && part == text && first:
		return 3 * certain // the row is about these words
	case literal && part == text:
		return 2 * certain
	case literal && strings.Contains(exact, " ") && strings.Contains(text, exact): // the word "active" alone is in many lines
		return certain + float64(len(words))
	case literal && begins && strings.ContainsAny(rest[:1], ":;,("):
		return certain + ratio
	case ratio >= nearly && len(shared) > 1:
		return certain + ratio
	case literal && len(said) == 1 && strings.Contains(text, part):
		return ratio
	case 2*within >= min(all, asked) && len(shared) > 1:
		return ratio
	}
	return 0
}

// weight is how much words tell: those that are in many rows tell little.
func weight(words []string) (sum float64) {
	for _, w := range words {
		if slices.Contains(common, w) {
			sum += 0.3
		} else {
			sum++
		}
	}
	return sum
}

var common = []string{"active", "another", "been", "from", "have", "node", "program", "service", "supervisor", "that", "this", "with"}

// sameAs is a cell that may point at the one above it.
func sameAs(above, cell string) string {
	rest, same := strings.CutPrefix(cell, "the same")
	if same && !strings.HasPrefix(rest, " ") {
		return above + rest
	}
	return cell
}

// plainText is what Markdown says, where links are not followed by a click.
func plainText(s string) string {
	s = links.ReplaceAllStringFunc(s, func(link string) string {
		m := links.FindStringSubmatch(link)
		page, section, _ := strings.Cut(m[2], "#")
		if page == "" {
			page = "operations.md"
		}
		if section != "" {
			page += ", " + strings.ReplaceAll(section, "-", " ")
		}
		return m[1] + " (" + page + ")"
	})
	return strings.NewReplacer("**", "", "*", "").Replace(s)
}
