package golden

import (
	"os"
	"strings"
	"testing"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// A file that is replaced on one host after the other is told while it differs, and what it overrides for a node is taken up there.
func TestAChangedFileIsToldUntilEveryNodeHasIt(t *testing.T) {
	c := begin(t)
	const told = "one runs another config file than two: put the same file on every host."
	if s := c.ask("status"); strings.Contains(s, "another config file") {
		t.Fatalf("the same file is told as another one:\n%s", s)
	}
	text := strings.Replace(c.text, "  plain: {", "  plain: {nodes: {two: {eligible: false}}, ", 1)
	must.OK(t, os.WriteFile(c.files[0], []byte(text), 0o600))
	kit.Until(t, kit.Soon, "the status tells that the files differ", func() bool { return strings.Contains(c.ask("status"), told) })
	if s := c.ask("status", "--json", "plain"); !strings.Contains(strings.Join(strings.Fields(s), ""), `"config_files":[["one"],["two"]]`) {
		t.Errorf("not in JSON: %s", s)
	}
	must.OK(t, os.WriteFile(c.files[1], []byte(text), 0o600))
	kit.Until(t, kit.Soon, "two takes its override up, and nothing differs", func() bool {
		s := c.ask("status", "plain")
		return strings.Contains(s, "eligible: false") && !strings.Contains(s, "another config file")
	})
}
