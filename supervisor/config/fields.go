package config

import (
	"reflect"
	"slices"
	"strings"
)

// field is one key of a mapping that is read into a struct.
type field struct {
	name  string
	index []int  // for reflect's FieldByIndex
	group string // of the keys of one group at most one may be given

	omitEmpty, flow bool // how it is written
}

// fieldsOf lists the keys that a mapping read into t may have, in the order in which they are read.
func fieldsOf(t reflect.Type) []field {
	var all []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, rest, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		options := strings.Split(rest, ",")
		if name == "-" {
			continue
		}
		if slices.Contains(options, "inline") {
			for _, inner := range fieldsOf(f.Type) {
				inner.index = append([]int{i}, inner.index...)
				all = append(all, inner)
			}
			continue
		}
		all = append(all, field{
			name: name, index: []int{i}, group: f.Tag.Get("oneof"),
			omitEmpty: slices.Contains(options, "omitempty"), flow: slices.Contains(options, "flow"),
		})
	}
	return all
}

// keysOf lists the names of fieldsOf.
func keysOf(t reflect.Type) []string {
	var names []string
	for _, f := range fieldsOf(t) {
		names = append(names, f.name)
	}
	return names
}
