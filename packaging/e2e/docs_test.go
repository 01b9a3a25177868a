package e2e

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"understudy/supervisor/testbed/must"
)

const (
	readme         = "../../README.md"
	installDoc     = "../../docs/install.md"
	maintenanceDoc = "../../docs/maintenance.md"
)

// Blocks that are typed as written by some test, by the name in the comment before them.
var typedBlocks = []string{"install", "pair", "zookeeper", "run", "instance", "container", "import", "ensemble", "look", "replace", "drain", "back", "ansible"}

// untyped is how the blocks begin that no test here types: the demonstration and upgrades have tests of their own, and
// `make test` is what CI runs.
var untyped = []string{"make build", "understudy reexec"}

// block is the text that a page has between a comment with its name and the end of the code.
func block(page, name string) (string, error) {
	text, err := os.ReadFile(page)
	if err != nil {
		return "", err
	}
	found := regexp.MustCompile(fmt.Sprintf("(?s)<!-- typed: %s -->\n *```[a-z]+\n(.*?)\n *```\n", name)).FindSubmatch(text)
	if found == nil {
		return "", fmt.Errorf("%s has no block %s", page, name)
	}
	return string(found[1]), nil
}

// typed is the commands of a block.
func typed(page, name string) ([]string, error) {
	text, err := block(page, name)
	if err != nil {
		return nil, err
	}
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines, nil
}

// commands is typed for a test.
func commands(tb testing.TB, page, name string) []string {
	tb.Helper()
	lines, err := typed(page, name)
	must.OK(tb, err)
	return lines
}

// A block that is new is typed by a test, or it is said why not.
func TestCommandsOfTheDocsAreTyped(t *testing.T) {
	seen := map[string]bool{}
	for _, page := range []string{readme, installDoc, walkthroughDoc, zookeeperDoc, maintenanceDoc} {
		text, err := os.ReadFile(page)
		must.OK(t, err)
		for _, b := range regexp.MustCompile("(?:<!-- typed: ([a-z]+) -->\n)? *```(?:sh|dockerfile)\n *(.*)\n").FindAllStringSubmatch(string(text), -1) {
			name, line := b[1], b[2]
			begins := func(with string) bool { return strings.HasPrefix(line, with) }
			if name == "" && !slices.ContainsFunc(untyped, begins) {
				t.Errorf("%s: nothing types %q", page, line)
			} else if name != "" && !slices.Contains(typedBlocks, name) {
				t.Errorf("%s: nothing types the block %s", page, name)
			}
			seen[name] = true
		}
	}
	for _, name := range typedBlocks {
		if !seen[name] {
			t.Errorf("there is no block %s", name)
		}
	}
}
