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
	return &cobra.Command{
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
		RunE: func(_ *cobra.Command, args []string) error {
			found := explained(operations, strings.Join(args, " "))
			if len(found) == 0 {
				return errors.New("no row of docs/operations.md fits these words: give more of the line, or see `understudy status`")
			}
			width := screenOf(os.Stdout).width
			for i, r := range found {
				if i > 0 {
					fmt.Println()
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
						fmt.Println(indent + line)
					}
				}
			}
			return nil
		},
	}
}

// explanation is a row of a table of operations.md; head is the title of its second column.
type explanation struct{ what, head, means, do string }

var (
	tableCells = regexp.MustCompile(` *\| *`)
	links      = regexp.MustCompile(`\[([^\]]*)\]\(([^)]*)\)`)
	telling    = regexp.MustCompile(`[\p{L}\p{N}]{4,}`) // words that are more than "the" and "is"
)

// explained are the rows that share the most words with a text: those of a literal in it that is in the text whole, or else of what they
// are about.
func explained(operations, text string) (best []explanation) {
	text = strings.ToLower(text)
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
		for i, literal := range strings.Split(strings.ToLower(cells[1]), "`") {
			words := telling.FindAllString(literal, -1)
			within := 0
			for _, w := range words {
				if slices.Contains(said, w) {
					within++
				}
			}
			switch {
			case within == 0:
			case i%2 == 1 && strings.Contains(text, literal) && (len(said) == 1 || strings.Contains(literal, " ")):
				// all of it, in its order: the word "active" alone is in many lines
				score = max(score, 1000+float64(len(words)))
			case 2*within >= min(len(words), len(said)) && within > 1:
				score = max(score, float64(within)/float64(len(words)+len(said)-within))
			}
		}
		if score > most {
			most, best = score, nil
		}
		if score == most && score > 0 {
			best = append(best, row)
		}
	}
	return best[:min(len(best), 3)]
}

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
