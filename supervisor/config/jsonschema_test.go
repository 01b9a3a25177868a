package config

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"
)

// schema is a node of a JSON schema, draft 7: what the editors' language servers read best.
type schema map[string]any

// jsonSchema describes the file as a JSON schema, for editors that complete and check it while it is written. It knows keys
// and types; only Read knows it all. The packages have it as a file.
func jsonSchema() ([]byte, error) {
	defaults := Default()
	root := structSchema(reflect.TypeFor[document](), reflectOf(&document{Config: *defaults}))
	root["$schema"] = "http://json-schema.org/draft-07/schema#"
	root["title"] = "Understudy's configuration"
	root["description"] = "What one supervisor runs. An included file holds services: and nothing else."
	service, process := entry{written: writtenDefaults()}, Process{Program: writtenDefaults().inherited(), UndoTimeout: defaultUndoTimeout}
	node := nodeKeys{HTTP: defaults.HTTP, Fencing: defaults.Fencing, Watchdog: defaults.Watchdog}
	root["definitions"] = schema{
		"service": structSchema(reflect.TypeFor[entry](), reflectOf(&service)),
		"node":    structSchema(reflect.TypeFor[nodeKeys](), reflectOf(&node)),
		"process": structSchema(reflect.TypeFor[Process](), reflectOf(&process)),
	}
	text, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write schema: %w", err)
	}
	return append(text, '\n'), nil
}

// structSchema describes a mapping; what v holds are its defaults.
func structSchema(t reflect.Type, v reflect.Value) schema {
	keys := schema{}
	groups := map[string][]string{}
	for _, f := range fieldsOf(t) {
		value := v.FieldByIndex(f.index)
		key := valueSchema(value)
		if f.omitEmpty && isEmpty(value) || key["default"] == "" {
			delete(key, "default") // the meaning says what follows
		}
		key["description"] = t.FieldByIndex(f.index).Tag.Get("doc")
		keys[f.name] = key
		if f.group != "" {
			groups[f.group] = append(groups[f.group], f.name)
		}
	}
	s := schema{"type": "object", "additionalProperties": false, "properties": keys}
	var apart []any
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		for i, one := range groups[group] {
			for _, other := range groups[group][:i] {
				apart = append(apart, schema{"not": schema{"required": []string{other, one}}})
			}
		}
	}
	if len(apart) > 0 {
		s["allOf"] = apart
	}
	return s
}

const durationPattern = `^[-+]?(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`

// Text may be written without quotes where it looks like a number or a truth value: it is its literal text that counts.
var anyScalar = []string{"string", "number", "boolean"}

func valueSchema(v reflect.Value) schema {
	switch value := v.Interface().(type) {
	case Command:
		return commandSchema()
	case entry, written: // a service may be all defaults, and then nothing at all
		return orNothing("service")
	case nodeKeys:
		return orNothing("node")
	case nodeKey:
		each := reflect.ValueOf(map[string]nodeKeys{})
		return schema{"oneOf": []any{schema{"type": anyScalar}, mapSchema(each)}}
	case Process:
		return schema{"$ref": "#/definitions/process"}
	case Hook:
		return schema{"oneOf": []any{commandSchema(), structSchema(v.Type(), v)}}
	case Address:
		value.Announce = defaultAnnounce
		return schema{"oneOf": []any{schema{"type": "string"}, structSchema(v.Type(), reflectOf(&value))}}
	case Addresses:
		one := valueSchema(reflectOf(&Address{}))["oneOf"].([]any)
		return schema{"oneOf": append(one, schema{"type": "array", "items": schema{"oneOf": one}})}
	case Limit:
		side := schema{"type": []string{"integer", "string"}, "pattern": `^([0-9]+ *([KMGT]i)?B?|[0-9]+%|unlimited)$`, "minimum": 0}
		both := structSchema(reflect.TypeFor[limitSides](), reflectOf(&limitSides{}))
		for name, key := range both["properties"].(schema) {
			maps.Copy(key.(schema), side)
			both["properties"].(schema)[name] = key
		}
		both["required"] = []string{"soft", "hard"}
		return schema{"oneOf": []any{side, both}}
	case InheritEnv:
		names := schema{"type": "array", "items": schema{"type": "string", "pattern": envName.String()}}
		return schema{"oneOf": []any{schema{"type": "boolean"}, names}, "default": true}
	case Capability:
		return schema{"enum": capabilities}
	case time.Duration:
		return schema{"type": "string", "pattern": durationPattern, "default": value.String()}
	case Signal:
		return schema{
			"type": []string{"string", "integer"}, "minimum": 1, "maximum": 64, "default": value.String(),
			"examples": []string{"TERM", "INT", "QUIT", "HUP", "USR1", "USR2", "KILL"},
		}
	case Size:
		return schema{"type": []string{"integer", "string"}, "pattern": `^[0-9]+ *([KMGT]i)?B?$`, "minimum": 0, "default": value.String()}
	case choice:
		return schema{"enum": value.choices(), "default": v.String()}
	case encoding.TextMarshaler, ServerAddress:
		return schema{"type": anyScalar}
	}
	switch v.Kind() {
	case reflect.Pointer:
		item := reflect.New(v.Type().Elem())
		if t, ok := item.Interface().(interface{ setDefaults() }); ok {
			t.setDefaults()
		}
		return valueSchema(item.Elem())
	case reflect.Struct:
		return structSchema(v.Type(), v)
	case reflect.Map:
		return mapSchema(v)
	case reflect.Slice:
		item := reflect.New(v.Type().Elem()).Elem()
		return schema{"type": "array", "items": withoutDefault(valueSchema(item))}
	case reflect.Bool:
		return schema{"type": "boolean", "default": v.Bool()}
	case reflect.Int:
		return schema{"type": "integer", "default": v.Int()}
	}
	return schema{"type": anyScalar, "default": v.String()}
}

func orNothing(definition string) schema {
	return schema{"oneOf": []any{schema{"$ref": "#/definitions/" + definition}, schema{"type": "null"}}}
}

func mapSchema(v reflect.Value) schema {
	item := reflect.New(v.Type().Elem()).Elem()
	s := schema{"type": "object", "additionalProperties": withoutDefault(valueSchema(item))}
	if _, ok := item.Interface().(Limit); ok {
		s["propertyNames"] = schema{"enum": slices.Concat(limits, together)}
	}
	return s
}

func commandSchema() schema {
	return schema{"oneOf": []any{schema{"type": "string"}, schema{"type": "array", "items": schema{"type": anyScalar}}}}
}

// withoutDefault is for what is given or not there.
func withoutDefault(s schema) schema {
	delete(s, "default")
	return s
}
