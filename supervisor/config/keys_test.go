package config

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// everyKey lists every key of the file by its path, as in services.*.restart.delay: those of the top first.
func everyKey() []string {
	found := map[string]bool{}
	var walk func(t reflect.Type, at string)
	walk = func(t reflect.Type, at string) {
		switch {
		case t.Kind() == reflect.Pointer, t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
			walk(t.Elem(), at)
		case t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Struct:
			walk(t.Elem(), at+".*")
		case t == reflect.TypeFor[Limit]():
			walk(reflect.TypeFor[limitSides](), at)
		case t.Kind() == reflect.Struct:
			for _, f := range fieldsOf(t) {
				key := at + "." + f.name
				found[key[1:]] = true
				if key != ".defaults" && f.name != "nodes" && f.name != "any" { // those of services, and of methods
					walk(t.FieldByIndex(f.index).Type, key)
				}
			}
		}
	}
	walk(reflect.TypeFor[document](), "")
	return slices.SortedFunc(maps.Keys(found), func(a, b string) int {
		return cmp.Or(cmp.Compare(depth(a), depth(b)), cmp.Compare(a, b))
	})
}

// depth puts the keys of services behind those of the top.
func depth(key string) int { return strings.Count(key, "services.*") }
