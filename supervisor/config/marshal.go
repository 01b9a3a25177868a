package config

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"gopkg.in/yaml.v3"
)

// Marshal writes a configuration with all its defaults, so that Read reads back the same.
func Marshal(c *Config) ([]byte, error) {
	root, err := c.node()
	if err != nil {
		return nil, fmt.Errorf("write config: %w", err)
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(root); err != nil {
		return nil, fmt.Errorf("write config: %w", err)
	}
	if err := encoder.Close(); err != nil {
		return nil, fmt.Errorf("write config: %w", err)
	}
	return out.Bytes(), nil
}

// MarshalJSON is Marshal's in JSON, which is YAML too.
func (c *Config) MarshalJSON() ([]byte, error) {
	root, err := c.node()
	if err != nil {
		return nil, fmt.Errorf("write config: %w", err)
	}
	var doc any
	if err := root.Decode(&doc); err != nil {
		return nil, fmt.Errorf("write config: %w", err)
	}
	return json.Marshal(doc)
}

func (c *Config) node() (*yaml.Node, error) {
	doc := c.document()
	return encode(reflectOf(&doc))
}

// encode is the counterpart of decoder.value. The library's own encoder puts text into block styles that it then cannot
// read back.
func encode(v reflect.Value) (*yaml.Node, error) {
	switch value := v.Interface().(type) {
	case time.Duration:
		return word(value.String()), nil
	case nodeKey:
		return word(value.name), nil
	case Umask: // without quotes other readers of YAML would take it for decimal
		text, err := value.MarshalText()
		node := word(string(text))
		node.Style = yaml.DoubleQuotedStyle
		return node, err
	case limitValue:
		text, err := value.MarshalText()
		if uint64(value) == Unlimited {
			return word(string(text)), err
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: string(text)}, err
	case Process:
		if member := value.written(); member != nil {
			return encode(reflect.ValueOf(member))
		}
	case encoding.TextMarshaler:
		text, err := value.MarshalText()
		return word(string(text)), err
	case InheritEnv:
		if len(value) == 0 {
			return encode(reflect.ValueOf(value == nil))
		}
		return encode(reflect.ValueOf([]string(value)))
	case Limit:
		if value.Soft == value.Hard {
			return encode(reflect.ValueOf(limitValue(value.Soft)))
		}
		return encode(reflect.ValueOf(limitSides{limitValue(value.Soft), limitValue(value.Hard)}))
	}
	switch v.Kind() {
	case reflect.Pointer:
		return encode(v.Elem())
	case reflect.Struct:
		return encodeStruct(v)
	case reflect.Map:
		node := &yaml.Node{Kind: yaml.MappingNode}
		byName := func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) }
		for _, key := range slices.SortedFunc(slices.Values(v.MapKeys()), byName) {
			if err := appendPair(node, key.String(), v.MapIndex(key)); err != nil {
				return nil, err
			}
		}
		return node, nil
	case reflect.Slice:
		node := &yaml.Node{Kind: yaml.SequenceNode}
		for i := range v.Len() {
			item, err := encode(v.Index(i))
			if err != nil {
				return nil, err
			}
			node.Content = append(node.Content, item)
		}
		return node, nil
	case reflect.Int:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.FormatInt(v.Int(), 10)}, nil
	case reflect.Bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(v.Bool())}, nil
	case reflect.String:
		return word(v.String()), nil
	}
	return nil, fmt.Errorf("no rule writes a %v", v.Type())
}

func encodeStruct(v reflect.Value) (*yaml.Node, error) {
	node := &yaml.Node{Kind: yaml.MappingNode}
	for _, f := range fieldsOf(v.Type()) {
		value := v.FieldByIndex(f.index)
		if f.omitEmpty && isEmpty(value) {
			continue
		}
		if err := appendPair(node, f.name, value); err != nil {
			return nil, err
		}
		if f.flow {
			node.Content[len(node.Content)-1].Style = yaml.FlowStyle
		}
	}
	return node, nil
}

func appendPair(node *yaml.Node, key string, v reflect.Value) error {
	value, err := encode(v)
	if err != nil {
		return err
	}
	node.Content = append(node.Content, word(key), value)
	return nil
}

func isEmpty(v reflect.Value) bool {
	if v.Kind() == reflect.Map || v.Kind() == reflect.Slice {
		return v.Len() == 0
	}
	return v.IsZero()
}

// word is text, quoted where it would be read as something else.
func word(text string) *yaml.Node {
	node := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
	odd := func(r rune) bool { return !unicode.IsPrint(r) }
	if text == "<<" || strings.IndexFunc(text, odd) >= 0 { // the library writes << as if it were not a merge key
		node.Style = yaml.DoubleQuotedStyle
	}
	return node
}
