package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
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
	text, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	current(t, schemaFile, text)
}

func TestEveryKeyIsExplained(t *testing.T) {
	root := schemaAsMap(t)
	var walk func(at string, node any)
	walk = func(at string, node any) {
		switch node := node.(type) {
		case map[string]any:
			keys, _ := node["properties"].(map[string]any)
			for name, key := range keys {
				if doc, _ := key.(map[string]any)["description"].(string); !strings.HasSuffix(doc, ".") && name != "scheme" {
					t.Errorf("%s.%s: no description that is a sentence: %q", at, name, doc)
				}
			}
			for name, inner := range node {
				walk(at+"."+name, inner)
			}
		case []any:
			for i, inner := range node {
				walk(fmt.Sprintf("%s[%d]", at, i), inner)
			}
		}
	}
	walk("", root)
}

func schemaAsMap(t *testing.T) map[string]any {
	t.Helper()
	text, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	var root map[string]any
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	return root
}

// at finds what the schema says of a key, by its path in Keys.
func at(root map[string]any, key string) map[string]any {
	node := root
	into := func() {
		for {
			if ref, ok := node["$ref"].(string); ok {
				node = root["definitions"].(map[string]any)[strings.TrimPrefix(ref, "#/definitions/")].(map[string]any)
			} else if items, ok := node["items"].(map[string]any); ok {
				node = items
			} else if choices, ok := node["oneOf"].([]any); ok {
				for _, c := range choices { // the long form
					if c := c.(map[string]any); c["properties"] != nil || c["$ref"] != nil {
						node = c
					}
				}
				if node["oneOf"] != nil {
					return
				}
			} else {
				return
			}
		}
	}
	for name := range strings.SplitSeq(key, ".") {
		into()
		keys, _ := node["properties"].(map[string]any)
		next, _ := keys[name].(map[string]any)
		if name == "*" {
			next, _ = node["additionalProperties"].(map[string]any)
		}
		if next == nil {
			return nil
		}
		node = next
	}
	return node
}

func TestSchemaHasEveryKey(t *testing.T) {
	root := schemaAsMap(t)
	for _, key := range everyKey() {
		if node := at(root, key); node == nil || node["description"] == "" {
			t.Errorf("the schema does not describe %s", key)
		}
	}
}

// documented is how docs/config.md calls a key, and "" for those of processes, which are a service's too.
func documented(key string) string {
	service, ok := strings.CutPrefix(key, "services.*.")
	if !ok {
		return key
	}
	process, ok := strings.CutPrefix(service, "processes.")
	switch {
	case !ok:
		return strings.ReplaceAll(service, "methods.", "methods[].")
	case slices.Contains(everyKey(), "services.*."+process):
		return ""
	}
	return "processes[]." + process
}

var keyRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")

func TestDocsNameEveryKey(t *testing.T) {
	root := schemaAsMap(t)
	var table strings.Builder
	part := ""
	for _, key := range everyKey() {
		next := "### At the top of the file"
		if strings.HasPrefix(key, "services.*") {
			next = "### Of a service"
		}
		if next != part {
			part = next
			fmt.Fprintf(&table, "\n%s\n\n| key | default | meaning |\n| --- | --- | --- |\n", part)
		}
		name := documented(key)
		if name == "" {
			continue
		}
		node := at(root, key)
		value := ""
		if v, ok := node["default"]; ok {
			value = fmt.Sprintf("`%v`", v)
		}
		doc := strings.ReplaceAll(fmt.Sprint(node["description"]), "|", "\\|")
		if words, ok := node["enum"].([]any); ok {
			doc = fmt.Sprintf("%s One of %s.", doc, strings.Trim(strings.ReplaceAll(fmt.Sprintf("%q", words), " ", ", "), "[]"))
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", name, value, strings.ReplaceAll(doc, `"`, "`"))
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

	var named, want []string
	for _, row := range keyRow.FindAllStringSubmatch(string(text), -1) {
		named = append(named, row[1])
	}
	for _, key := range everyKey() {
		if name := documented(key); name != "" {
			want = append(want, name)
		}
	}
	slices.Sort(named)
	slices.Sort(want)
	if diff := cmp.Diff(slices.Compact(want), slices.Compact(named)); diff != "" && !*update {
		t.Error(diff)
	}
	for _, name := range LimitNames() {
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("the docs do not name the limit %s", name)
		}
	}
}

// Of the examples in the docs each has to load: indented ones are parts of a service.
func TestExamplesInTheDocsLoad(t *testing.T) {
	text, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) < 6 {
		t.Fatalf("%d examples", len(blocks))
	}
	for _, block := range blocks {
		src := block[1]
		if strings.HasPrefix(src, "#") || strings.Contains(src, "include:") {
			continue
		}
		if strings.HasPrefix(src, "    ") {
			src = "services:\n  s:\n    command: x\n" + src
		}
		if !strings.Contains(src, "zookeeper:") {
			src = head + src
		}
		if _, err := load(src); err != nil {
			t.Errorf("%v\n%s", err, src)
		}
	}
}
