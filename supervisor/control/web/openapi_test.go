package web

import (
	"bytes"
	"encoding"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/control"
)

var update = flag.Bool("update", false, "write the schemas of docs/openapi.json again")

const openAPI = "../../../docs/openapi.json"

// schemas are of the types that answers and orders have in JSON.
type schemas map[string]any

func (all schemas) of(t reflect.Type) map[string]any {
	switch {
	case t.Kind() == reflect.Pointer:
		return map[string]any{"oneOf": []any{all.of(t.Elem()), map[string]any{"type": "null"}}}
	case t == reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return map[string]any{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Slice:
		return map[string]any{"type": "array", "items": all.of(t.Elem())}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Struct:
		name := strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
		if _, known := all[name]; !known {
			all[name] = nil
			properties, required := map[string]any{}, []any{}
			all.fields(t, properties, &required)
			all[name] = map[string]any{"type": "object", "properties": properties, "required": required}
		}
		return map[string]any{"$ref": "#/components/schemas/" + name}
	}
	return map[string]any{"type": "integer"}
}

func (all schemas) fields(t reflect.Type, properties map[string]any, required *[]any) {
	for f := range t.Fields() {
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "" && f.Anonymous:
			all.fields(f.Type, properties, required)
		case name != "" && name != "-":
			properties[name] = all.of(f.Type)
			if rest != "omitempty" {
				*required = append(*required, name)
			}
		}
	}
}

// The file says what the server answers: neither has a path, an order or a key that the other one lacks.
func TestTheOpenAPIFileIsWhatTheServerDoes(t *testing.T) {
	text, err := os.ReadFile(openAPI)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Paths map[string]map[string]struct {
			Parameters []struct {
				Name   string
				Schema struct{ Enum []string }
			}
		}
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("server.go")
	if err != nil {
		t.Fatal(err)
	}
	var served, written []string
	for _, route := range regexp.MustCompile(`"((?:GET|POST) /[^"]*)"`).FindAllSubmatch(source, -1) {
		served = append(served, strings.Replace(string(route[1]), "/{$}", "/", 1))
	}
	for path, methods := range file.Paths {
		for method, m := range methods {
			written = append(written, strings.ToUpper(method)+" "+path)
			for _, p := range m.Parameters {
				kind := aService
				if strings.Contains(path, "/nodes/") {
					kind = aNode
				}
				if p.Name == "order" && !slices.Equal(p.Schema.Enum, orders[kind]) {
					t.Errorf("%s: the orders are %q, and the server has %q", path, p.Schema.Enum, orders[kind])
				}
			}
		}
	}
	slices.Sort(served)
	slices.Sort(written)
	if !slices.Equal(served, written) {
		t.Errorf("the server has %q\nand the file %q", served, written)
	}

	all := schemas{}
	for _, answer := range []reflect.Type{reflect.TypeFor[control.Status](), reflect.TypeFor[Local](), reflect.TypeFor[control.HistoryEntry](), reflect.TypeFor[request](), reflect.TypeFor[control.Departure]()} {
		all.of(answer)
	}
	status := all["Status"].(map[string]any)
	status["properties"].(map[string]any)["local"] = map[string]any{"$ref": "#/components/schemas/Local"}
	status["required"] = append([]any{"local"}, status["required"].([]any)...)
	delete(all["Request"].(map[string]any), "required")
	var whole map[string]any
	if err := json.Unmarshal(text, &whole); err != nil {
		t.Fatal(err)
	}
	whole["components"] = map[string]any{"schemas": all}
	want, err := json.MarshalIndent(whole, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile(openAPI, want, 0o644); err != nil {
			t.Fatal(err)
		}
	} else if !bytes.Equal(text, want) {
		t.Errorf("%s is not current: go test ./supervisor/control/web -run OpenAPI -update", openAPI)
	}
	for _, ref := range regexp.MustCompile(`#/components/schemas/(\w+)`).FindAllStringSubmatch(string(want), -1) {
		if !slices.Contains(slices.Collect(maps.Keys(all)), ref[1]) {
			t.Errorf("there is no schema %s", ref[1])
		}
	}
}
