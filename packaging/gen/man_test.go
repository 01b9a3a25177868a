package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"understudy/supervisor/testbed/must"
)

// manuals are all manual pages, by their names, in troff.
func manuals(t *testing.T) map[string]string {
	t.Helper()
	t.Chdir("../..")
	dir := t.TempDir()
	must.OK(t, (about{version: "1.2.3"}).manual(dir))
	names, err := filepath.Glob(dir + "/*")
	if err != nil || len(names) < 15 {
		t.Fatalf("%v: %v", names, err)
	}
	all := map[string]string{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		must.OK(t, err)
		all[filepath.Base(name)] = string(text)
	}
	return all
}

// A reader of a manual page sees no Markdown: its links, emphasis and code are turned into troff, over line ends too.
func TestManualPagesHaveNoMarkdown(t *testing.T) {
	examples := regexp.MustCompile(`(?ms)^\.nf$.*?^\.fi$`)
	markdown := regexp.MustCompile(`\*\*|\*\w[^*\n]*\*|\]\(|\x60|\\\(ga|(?m)^(?:#|\| )`)
	for name, text := range manuals(t) {
		for _, found := range markdown.FindAllString(examples.ReplaceAllString(text, ""), -1) {
			t.Errorf("%s has %q", name, found)
		}
	}
}

// Cells have the names of their columns, links the page that they lead to, and all exit codes of a command are listed.
func TestManualPagesKeepWhatMarkdownShows(t *testing.T) {
	all := manuals(t)
	plain := strings.NewReplacer(`\fB`, "", `\fI`, "", `\fP`, "", `\fR`, "", `\-`, "-", `\&`, "", `\(aq`, "'")
	for page, lines := range map[string][]string{
		"understudy.yaml.5": {
			"lease, grace_delay\nfast: 1 s, 0.5 s\n.br\nnormal (the default): 3 s, 2 s\n.br\nwide: 10 s, 3 s\n",
			"what counts as proof: exit code 0\n.br\nwrong answer or timeout: ",
			"a service is added\nthis node stands for it\n",
			" Default: TERM.\n",
		},
		"understudy-check.1":  {" 3: with --zk, "},
		"understudy-status.1": {" 3: timed out. 4, 5, 6: "},
		"understudy-run.1":    {" 75: "},
		"understudy.1":        {" 3: timed out. 4, 5, 6: what status --check found. 75: "},
	} {
		for _, line := range lines {
			if !strings.Contains(plain.Replace(all[page]), line) {
				t.Errorf("%s does not say %q", page, line)
			}
		}
	}
}

// Links, code and emphasis may go over line ends.
func TestParagraphsAreReadWhole(t *testing.T) {
	lines := joined("- [a\n  b](c.md#d), `e\n  f`, **g\n  `h`**\n- [c.md](c.md), [here](#d)\n")
	want := []string{`\- a b [c.md], \fBe f\fP, \fBg \fBh\fP\fR`, `\- c.md, here`, ""}
	for i, line := range lines {
		lines[i] = words(unlink(line))
	}
	if !slices.Equal(lines, want) {
		t.Errorf("%q, not %q", lines, want)
	}
}
