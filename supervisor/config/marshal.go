package config

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
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
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(c.node()), encoder.Close()); err != nil {
		return nil, fmt.Errorf("write config: %w", err)
	}
	return out.Bytes(), nil
}

// MarshalJSON is Marshal's in JSON, which is YAML too.
func (c *Config) MarshalJSON() ([]byte, error) {
	var doc any
	if err := c.node().Decode(&doc); err != nil {
		return nil, fmt.Errorf("write config: %w", err)
	}
	return json.Marshal(doc)
}

func (c *Config) node() *yaml.Node {
	doc := c.document()
	return encode(reflectOf(&doc))
}

// encode is the counterpart of decoder.value. The library's own encoder puts text into block styles that it then cannot
// read back.
func encode(v reflect.Value) *yaml.Node {
	switch value := v.Interface().(type) {
	case time.Duration:
		return word(value.String())
	case nodeKey:
		return word(value.name)
	case entry:
		node := encodeStruct(v, keysOf(v.Type()))
		if r := value.Replicated; r != nil && len(r.Others) > 0 {
			node.Content = append(node.Content, word("nodes"), r.nodes())
		}
		return node
	case Umask: // without quotes other readers of YAML would take it for decimal
		node := word(textOf(value))
		node.Style = yaml.DoubleQuotedStyle
		return node
	case limitValue:
		if uint64(value) == Unlimited {
			return word(textOf(value))
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: textOf(value)}
	case Process:
		if value.member() != "" {
			return encodeStruct(v, value.memberKeys())
		}
	case encoding.TextMarshaler:
		return word(textOf(value))
	case InheritEnv:
		if len(value) == 0 {
			return encode(reflect.ValueOf(value == nil))
		}
		return encode(reflect.ValueOf([]string(value)))
	case Limit:
		if value.Percent {
			return word(strconv.FormatUint(value.Hard, 10) + "%")
		}
		if value.Soft == value.Hard {
			return encode(reflect.ValueOf(limitValue(value.Soft)))
		}
		return encode(reflect.ValueOf(limitSides{limitValue(value.Soft), limitValue(value.Hard)}))
	}
	switch v.Kind() {
	case reflect.Pointer:
		return encode(v.Elem())
	case reflect.Struct:
		return encodeStruct(v, keysOf(v.Type()))
	case reflect.Map:
		node := &yaml.Node{Kind: yaml.MappingNode}
		byName := func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) }
		for _, key := range slices.SortedFunc(slices.Values(v.MapKeys()), byName) {
			node.Content = append(node.Content, word(key.String()), encode(v.MapIndex(key)))
		}
		return node
	case reflect.Slice:
		node := &yaml.Node{Kind: yaml.SequenceNode}
		for i := range v.Len() {
			node.Content = append(node.Content, encode(v.Index(i)))
		}
		return node
	case reflect.Int:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.FormatInt(v.Int(), 10)}
	case reflect.Bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(v.Bool())}
	case reflect.String:
		return word(v.String())
	}
	panic("config: no rule writes a " + v.Type().String())
}

func textOf(value encoding.TextMarshaler) string {
	text, _ := value.MarshalText() // none of ours fails
	return string(text)
}

// encodeStruct writes those fields whose keys are listed.
func encodeStruct(v reflect.Value, keys []string) *yaml.Node {
	node := &yaml.Node{Kind: yaml.MappingNode}
	for _, f := range fieldsOf(v.Type()) {
		value := v.FieldByIndex(f.index)
		if !slices.Contains(keys, f.name) || f.omitEmpty && isEmpty(value) {
			continue
		}
		written := encode(value)
		if f.flow {
			written.Style = yaml.FlowStyle
		}
		node.Content = append(node.Content, word(f.name), written)
	}
	return node
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
