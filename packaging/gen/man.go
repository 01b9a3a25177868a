package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"understudy/supervisor/cli"
)

// docDir is where the packages have docs, examples, and what these refer to.
const docDir = "/usr/share/doc/understudy"

// page is a manual page that is being written.
type page struct{ strings.Builder }

// escape makes text troff's.
func escape(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(text)
	if strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	return text
}

func (p *page) section(title string) { fmt.Fprintf(p, ".SH %s\n", title) }

// text writes paragraphs, divided by empty lines; lines inside one are filled.
func (p *page) text(text string) {
	for i, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			p.WriteString(".PP\n")
		}
		fmt.Fprintln(p, words(strings.ReplaceAll(paragraph, "\n", " ")))
	}
}

// words escapes a line, with what stands between backticks in bold.
func words(line string) string {
	var b strings.Builder
	for i, part := range strings.Split(strings.TrimSpace(line), "`") {
		part = escape(part)
		if i%2 == 1 {
			part = `\fB` + strings.TrimPrefix(part, `\&`) + `\fP`
		}
		b.WriteString(part)
	}
	return b.String()
}

// lines writes text as it stands.
func (p *page) lines(text string) {
	p.WriteString(".nf\n")
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		fmt.Fprintln(p, escape(line))
	}
	p.WriteString(".fi\n")
}

// item writes a term and what it means.
func (p *page) item(term, meaning string) { fmt.Fprintf(p, ".TP\n%s\n%s\n", term, words(meaning)) }

// commands makes a page for each command that is not hidden.
func (a about) commands() map[string]string {
	root := cli.Root(a.version, "")
	root.InitDefaultHelpFlag()
	pages := map[string]string{}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		pages[pageName(c)+".1"] = a.command(c)
		for _, sub := range visible(c) {
			walk(sub)
		}
	}
	walk(root)
	return pages
}

func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

func visible(c *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(c.Commands()), func(sub *cobra.Command) bool { return sub.Hidden || sub.Name() == "help" })
}

func (a about) command(c *cobra.Command) string {
	p := &page{}
	fmt.Fprintf(p, ".TH %s 1 %s \"understudy %s\" Understudy\n.nh\n.ad l\n",
		strings.ToUpper(escape(pageName(c))), a.date.Format("2006-01-02"), a.version)
	p.section("NAME")
	fmt.Fprintf(p, "%s \\- %s\n", escape(pageName(c)), escape(strings.ToLower(c.Short[:1])+c.Short[1:]))
	p.section("SYNOPSIS")
	uses := strings.Split(c.Use, " | ")
	if visible(c) != nil {
		uses = []string{c.Use + " COMMAND [flags]"}
	}
	for i, use := range uses {
		if i > 0 {
			p.WriteString(".br\n")
		}
		name, rest, _ := strings.Cut(use, " ")
		parent := ""
		if c.HasParent() {
			parent = c.Parent().CommandPath() + " "
		}
		fmt.Fprintf(p, "\\fB%s\\fP %s\n", escape(parent+name), escape(rest))
	}
	p.section("DESCRIPTION")
	p.text(cmp.Or(c.Long, c.Short+"."))
	if subs := visible(c); subs != nil {
		p.section("COMMANDS")
		for _, sub := range subs {
			p.item(`\fB`+escape(sub.Name())+`\fP`, sub.Short)
		}
	}
	p.flags(c)
	if c.Example != "" {
		p.section("EXAMPLE")
		p.lines(c.Example)
	}
	p.section("EXIT STATUS")
	p.text(exits(c))
	if !c.HasParent() {
		p.section("FILES")
		for _, file := range [][2]string{
			{"/etc/understudy/understudy.yaml", "The config, with the files that it includes from `/etc/understudy/conf.d`."},
			{"/run/understudy", "Notes of the supervisors: what has to be undone, which sessions to close. A boot deletes them."},
			{docDir + "/docs/operations.md",
				"What each warning and error in the log means, and what to do. `README.md` beside it lists all pages by question."},
			{docDir + "/docs/config.md", "Every key of the config."},
			{docDir + "/examples", "Configs to begin with."},
		} {
			p.item(`\fB`+escape(file[0])+`\fP`, file[1])
		}
	}
	p.section("SEE ALSO")
	var also []string
	if c.HasParent() {
		also = append(also, bold(pageName(c.Parent())))
	}
	for _, sub := range visible(c) {
		also = append(also, bold(pageName(sub)))
	}
	fmt.Fprintln(p, strings.Join(also, ", "))
	return p.String()
}

// exits is what the exit codes of a command mean.
func exits(c *cobra.Command) string {
	has := func(name string) bool { return c.Flags().Lookup(name) != nil }
	text := "0: done. 1: failed. 2: wrong arguments or config."
	switch {
	case !c.HasParent():
		return text + " 3: timed out. 4, 5, 6: what `status --check` found. 75: `run --wait` did not get the lock. " +
			"With `run --once` it is the exit code of COMMAND."
	case has("timeout"):
		text += " 3: timed out."
	case c.Name() == "check":
		text += " 3: with `--zk`, no ZooKeeper server answered."
	}
	if has("once") {
		text += " 75: `--wait` did not get the lock. With `--once` it is the exit code of COMMAND."
	}
	if has("check") {
		text += " 4, 5, 6: what `--check` found, as above."
	}
	return text
}

func bold(name string) string { return `\fB` + escape(name) + `\fP(1)` }

func (p *page) flags(c *cobra.Command) {
	c.InitDefaultHelpFlag()
	p.section("OPTIONS")
	c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		term := `\fB` + escape("--"+f.Name) + `\fP`
		if f.Shorthand != "" {
			term = `\fB` + escape("-"+f.Shorthand) + `\fP, ` + term
		}
		kind, meaning := pflag.UnquoteUsage(f)
		if kind != "" {
			term += ` \fI` + escape(kind) + `\fP`
		}
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" && f.DefValue != "0s" && f.DefValue != "[]" {
			meaning += " (default " + f.DefValue + ")"
		}
		p.item(term, meaning)
	})
}
