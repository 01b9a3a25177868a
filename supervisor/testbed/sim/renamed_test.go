package sim

import (
	"go/scanner"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// symbol is a token of a Go source, and where it stands there.
type symbol struct {
	kind    token.Token
	text    string
	at, end int
}

// symbols leaves out comments and blanks: only what the compiler sees counts.
func symbols(src string) (all []symbol) {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(src))
	s.Init(file, []byte(src), func(token.Position, string) {}, 0)
	for {
		pos, kind, text := s.Scan()
		switch {
		case kind == token.EOF:
			return all
		case kind == token.SEMICOLON && text == "\n":
			continue
		case text == "":
			text = kind.String()
		}
		at := file.Offset(pos)
		all = append(all, symbol{kind, text, at, at + len(text)})
	}
}

// mayChange reports whether the symbol is a name that somebody may change, and not one of Go's own.
func (s symbol) mayChange() bool {
	return s.kind == token.IDENT && types.Universe.Lookup(s.text) == nil
}

// place is a piece of a source that is another one but for names.
type place struct {
	at, end int
	names   map[string]string // there, by those in the other one
	changed int               // how many differ
}

// placeOf finds the only piece of whole that differs from old the least, and in no more than half of its names. They tell a rename
// from a rewrite, which a sabotage has to follow by hand.
func placeOf(whole, old string) (found place, ok bool) {
	there, wanted := symbols(whole), symbols(old)
	found.changed = len(wanted)
	for i := range max(len(there)-len(wanted)+1, 0) {
		p := place{at: there[i].at, end: there[i+len(wanted)-1].end}
		if !p.fits(wanted, there[i:]) || p.changed*2 > len(p.names) || p.changed > found.changed {
			continue
		}
		ok = p.changed < found.changed
		found = p
	}
	return found, ok
}

// fits compares symbols, and notes the names. The same name stays the same, and another one another.
func (p *place) fits(wanted, there []symbol) bool {
	p.names = map[string]string{}
	taken := map[string]string{}
	for i, w := range wanted {
		h := there[i]
		if w.kind != h.kind || w.text != h.text && !(w.mayChange() && h.mayChange()) {
			return false
		}
		if !w.mayChange() {
			continue
		}
		name, known := p.names[w.text]
		was, used := taken[h.text]
		if known && name != h.text || used && was != w.text {
			return false
		}
		if p.names[w.text], taken[h.text] = h.text, w.text; !known && w.text != h.text {
			p.changed++
		}
	}
	return true
}

// renamed is a source with other names.
func renamed(src string, names map[string]string) string {
	for _, s := range slices.Backward(symbols(src)) {
		if name, ok := names[s.text]; ok && s.kind == token.IDENT {
			src = src[:s.at] + name + src[s.end:]
		}
	}
	return src
}

// cutsNames reports whether the piece begins or ends within a name of the source.
func cutsNames(whole, old string) bool {
	part := func(c byte) bool { return c == '_' || token.IsIdentifier(string(rune(c))) || '0' <= c && c <= '9' }
	at := strings.Index(whole, old)
	end := at + len(old)
	return at > 0 && part(whole[at-1]) && part(old[0]) || end < len(whole) && part(whole[end]) && part(old[len(old)-1])
}

// follow is a change of whole in which names differ from those that the change was written for.
func (c change) follow(whole string) (string, bool) {
	p, ok := placeOf(whole, c.old)
	if !ok {
		return "", false
	}
	return whole[:p.at] + strings.TrimSpace(renamed(c.new, p.names)) + whole[p.end:], true
}
