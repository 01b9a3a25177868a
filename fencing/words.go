package fencing

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// Plugs are the nodes that a method may fence, with the method's word for each: an outlet, a machine, an address. Without plugs it
// fences any node that a breadcrumb names, but never asks a server that the breadcrumb chose: breadcrumbs come from outside.
type Plugs map[string]string

// facts are a target's words for {node}, {host} and so on.
type facts struct {
	words  map[string]string
	listed bool // the config names the node
}

// facts fails if the config does not know the target's node, or a word of the breadcrumb could mean something else.
func (p Plugs) facts(t Target) (facts, error) {
	if err := t.plain(); err != nil {
		return facts{}, err
	}
	plug, listed := p[t.Node]
	switch {
	case !listed && len(p) > 0:
		return facts{}, fmt.Errorf("the record of the active node gives node %q, which the method's plugs do not list: "+
			"add it there, or type "+
			"`understudy fence confirm %s --node NODE` once it is dead", t.Node, t.Service)
	case !listed:
		plug = t.Node
	}
	return facts{listed: listed, words: map[string]string{
		"service": t.Service, "node": t.Node, "plug": plug, "host": t.Host, "machine": t.Machine, "boot": t.Boot,
		"token": strconv.FormatInt(t.Token, 10), "session": t.Session, "address": t.Address,
	}}, nil
}

// place is the position of a placeholder.
type place int

const (
	told   place = iota // a server gets it that the config chose, or that must prove its identity
	chosen              // it decides which server is asked, and so gets a secret: only words of the config may do that
)

var placeholder = regexp.MustCompile(`\{(service|node|plug|host|machine|boot|token|session|address)\}`)

// fill fills in the placeholders of a text, each as escape has it.
func (f facts) fill(text string, at place, escape func(string) string) (string, error) {
	var fault error
	text = placeholder.ReplaceAllStringFunc(text, func(name string) string {
		key := name[1 : len(name)-1]
		if err := f.may(key, at); err != nil && fault == nil {
			fault = err
		}
		if escape == nil {
			return f.words[key]
		}
		return escape(f.words[key])
	})
	if fault != nil {
		return "", fault
	}
	return text, nil
}

// may reports whether a word may stand in a place.
func (f facts) may(key string, at place) error {
	switch key {
	case "service", "token":
		return nil
	case "node", "plug":
		if at == chosen && !f.listed {
			return fmt.Errorf("{%s} would let the record of the active node choose whom to ask: "+
				"list the nodes in the method's plugs, as in `plugs: {%s: ...}`", key, f.words["node"])
		}
		return nil
	case "boot", "session":
		if at != chosen {
			return nil
		}
	case "host":
		if f.listed && f.words[key] != f.words["node"] && f.words[key] != f.words["plug"] {
			return fmt.Errorf("the record of the active node places node %q on host %q, which the method's plugs do not name: "+
				"write {plug} in place of {host}", f.words["node"], f.words[key])
		}
		if f.listed || at != chosen {
			return nil
		}
	default:
		if !f.listed && at != chosen {
			return nil
		}
	}
	if f.listed {
		return fmt.Errorf("{%s} would let the record of the active node choose whom to ask, or what to fence: "+
			"write {plug} in its place, for the node's word in plugs", key)
	}
	return fmt.Errorf("{%s} would let the record of the active node choose whom to ask, or what to fence: "+
		"write {plug}, and list the nodes in the method's plugs", key)
}

// url fills in a URL: a placeholder is a part of a host's name, one segment of the path, or a value of the query, and nothing else.
func (f facts) url(text string) (string, error) {
	scheme, rest, found := strings.Cut(text, "://")
	if !found || placeholder.MatchString(scheme) {
		return "", errors.New("the URL has no scheme")
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority, rest := rest[:end], rest[end:]
	if i := strings.LastIndexByte(authority, ':'); strings.Contains(authority, "@") || strings.Contains(authority, "{token}") ||
		i >= 0 && placeholder.MatchString(authority[i:]) {
		return "", errors.New("the URL's user and port cannot be filled in, and its host must not become a number")
	}
	authority, err := f.fill(authority, chosen, nil)
	if err != nil {
		return "", err
	}
	path, query, asks := strings.Cut(rest, "?")
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		if !placeholder.MatchString(segment) {
			continue
		}
		if segments[i], err = f.fill(segment, told, url.PathEscape); err != nil {
			return "", err
		}
		if s := segments[i]; s == "" || s == "." || s == ".." {
			return "", fmt.Errorf("%s would be %q, which cannot be part of a path", segment, s)
		}
	}
	if query, err = f.fill(query, told, url.QueryEscape); err != nil {
		return "", err
	}
	path = strings.Join(segments, "/")
	if asks {
		query = "?" + query
	}
	return scheme + "://" + authority + path + query, nil
}

// mask removes secrets from a text before it is shown.
func mask(text string, secrets ...string) string {
	for _, s := range secrets {
		text = strings.ReplaceAll(text, s, "***")
	}
	return text
}

// mask removes secrets from an output.
func (t *tail) mask(secrets ...string) *tail {
	t.text = []byte(mask(string(t.text), secrets...))
	return t
}
