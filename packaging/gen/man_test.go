package main

import (
	"os"
	"path/filepath"
	"regexp"
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

// All exit codes of a command are listed.
func TestManualPagesHaveTheExitCodes(t *testing.T) {
	all := manuals(t)
	plain := strings.NewReplacer(`\fB`, "", `\fI`, "", `\fP`, "", `\fR`, "", `\-`, "-", `\&`, "", `\(aq`, "'")
	for page, lines := range map[string][]string{
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
