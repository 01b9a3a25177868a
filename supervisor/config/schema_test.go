package config

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	schemaFile = "../../packaging/understudy.schema.json"
	docsFile   = "../../docs/config.md"
)

// current compares a file of the tree with what it is made from; with -update it is written.
func current(t *testing.T, name string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(name)
	if err != nil && !*update {
		t.Fatal(err)
	}
	if *update && !bytes.Equal(got, want) {
		if err := os.WriteFile(name, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is not current (go test ./supervisor/config -update): %s", name, diff)
	}
}

func TestShippedSchemaIsCurrent(t *testing.T) {
	text, err := jsonSchema()
	if err != nil {
		t.Fatal(err)
	}
	current(t, schemaFile, text)
}

func TestEveryKeyIsExplained(t *testing.T) {
	for key, node := range everyKey(t) {
		if doc, _ := node["description"].(string); !strings.HasSuffix(doc, ".") && key != "zookeeper.auth.scheme" {
			t.Errorf("%s: no description that is a sentence: %q", key, doc)
		}
	}
}

// sameBelow are keys below each hook, and below both orders to a warm program, which mean the same there: one row has them.
var sameBelow = regexp.MustCompile(`^(hooks|warm)\.(?:on_\w+|promote|demote)\.`)

// documented is how docs/config.md calls a key, and "" for those of processes, which are a service's too.
func documented(key string, all map[string]map[string]any) string {
	service, ok := strings.CutPrefix(key, "services.*.")
	if !ok {
		return key
	}
	process, ok := strings.CutPrefix(service, "processes.")
	switch {
	case !ok && sameBelow.MatchString(service):
		return sameBelow.ReplaceAllString(service, "$1.*.")
	case !ok:
		return strings.ReplaceAll(service, "methods.", "methods[].")
	case all["services.*."+process] != nil:
		return ""
	}
	return "processes[]." + process
}

func TestDocsNameEveryKey(t *testing.T) {
	keys := everyKey(t)
	var table strings.Builder
	part := ""
	rows := map[string]string{}
	for _, key := range inOrder(keys) {
		next := "### At the top of the file"
		if strings.HasPrefix(key, "services.*") {
			next = "### Of a service"
		}
		if next != part {
			part = next
			clear(rows)
			fmt.Fprintf(&table, "\n%s\n\n| key | default | meaning |\n| --- | --- | --- |\n", part)
		}
		name, node := documented(key, keys), keys[key]
		if name == "" {
			continue
		}
		value := ""
		if v, ok := node["default"]; ok {
			value = fmt.Sprintf("`%v`", v)
		}
		doc := strings.ReplaceAll(fmt.Sprint(node["description"]), "|", "\\|")
		if words, ok := node["enum"].([]any); ok {
			doc = fmt.Sprintf("%s One of %s.", doc, strings.Trim(strings.ReplaceAll(fmt.Sprintf("%q", words), " ", ", "), "[]"))
		}
		row := fmt.Sprintf("| `%s` | %s | %s |\n", name, value, strings.ReplaceAll(doc, `"`, "`"))
		if rows[name] == "" {
			table.WriteString(row)
		} else if rows[name] != row {
			t.Errorf("%s has two rows: %s%s", name, rows[name], row)
		}
		rows[name] = row
	}
	text, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(text), "<!-- keys -->\n")
	_, after, ok2 := strings.Cut(rest, "<!-- /keys -->")
	if !ok1 || !ok2 {
		t.Fatal("no place for the keys")
	}
	current(t, docsFile, []byte(before+"<!-- keys -->\n"+table.String()+"\n<!-- /keys -->"+after))

	for _, name := range LimitNames() {
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("the docs do not name the limit %s", name)
		}
	}
}
