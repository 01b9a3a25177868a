package config

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

// everyKey is what the schema says of every key of the file by its path, as in services.*.restart.delay.
func everyKey(t *testing.T) map[string]map[string]any {
	t.Helper()
	text, err := jsonSchema()
	if err != nil {
		t.Fatal(err)
	}
	var root map[string]any
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	found := map[string]map[string]any{}
	var walk func(node map[string]any, at string)
	walk = func(node map[string]any, at string) {
		if ref, ok := node["$ref"].(string); ok {
			node = root["definitions"].(map[string]any)[strings.TrimPrefix(ref, "#/definitions/")].(map[string]any)
		}
		if more, ok := node["additionalProperties"].(map[string]any); ok {
			walk(more, at+"*.")
		}
		if items, ok := node["items"].(map[string]any); ok {
			walk(items, at)
		}
		for _, form := range listOf(node["oneOf"]) {
			walk(form, at)
		}
		keys, _ := node["properties"].(map[string]any)
		for name, key := range keys {
			key := key.(map[string]any)
			found[at+name] = key
			if at != "" || name != "defaults" && name != "node" { // which have the keys of a service and of the top
				if name != "nodes" { // those of services
					walk(key, at+name+".")
				}
			}
		}
	}
	walk(root, "")
	return found
}

func listOf(node any) (all []map[string]any) {
	list, _ := node.([]any)
	for _, one := range list {
		all = append(all, one.(map[string]any))
	}
	return all
}

// inOrder are the keys of the top first, and those of services behind them.
func inOrder(keys map[string]map[string]any) []string {
	depth := func(key string) int { return strings.Count(key, "services.*") }
	return slices.SortedFunc(maps.Keys(keys), func(a, b string) int { return cmp.Or(cmp.Compare(depth(a), depth(b)), cmp.Compare(a, b)) })
}
