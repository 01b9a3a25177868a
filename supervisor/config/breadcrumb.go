package config

import (
	"cmp"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// checkPlugs checks the list of the nodes that a method may fence.
func checkPlugs(p place, plugs map[string]string) {
	at := p.key("plugs")
	for _, node := range slices.Sorted(maps.Keys(plugs)) {
		if message := nameFault(node); message != "" {
			at.key(node).keyFault(message)
		}
		if other := alike(node, p.named); other != "" {
			at.key(node).warn("node: and nodes: have no such node (did you mean %s?)", quoted(other))
		}
		if word := plugs[node]; word == "" || !isPrintable(word) {
			at.key(node).fault("missing: write the word for %s there, even if it is the node's own name", quoted(node))
		}
	}
}

// fromCrumb finds placeholders by which a breadcrumb would name the target.
var fromCrumb = regexp.MustCompile(`\{(node|plug|host|machine|address)\}`)

// ofChild finds placeholders that tell of the child only. They may be sent, but choose no target.
var ofChild = regexp.MustCompile(`\{(boot|session)\}`)

// besidesPlugs finds placeholders whose values no list of nodes confirms.
var besidesPlugs = regexp.MustCompile(`\{(machine|address)\}`)

// checkFilledIn looks for placeholders that a method with plugs refuses to fill in: a takeover would be too late to learn that.
func checkFilledIn(at place, text string, chooses bool) {
	switch {
	case besidesPlugs.MatchString(text) || chooses && ofChild.MatchString(text):
		at.danger("the method will refuse a word that the record of the active node gives and plugs does not list: write {plug} or {node}")
	case strings.Contains(text, "{host}"):
		at.danger("the method will refuse a node whose host has neither the node's name nor its plug's; " +
			"write {plug} or {node} in place of {host}")
	}
}

// ofOneHost finds the fence agents of devices that switch off their own host, and no plug.
var ofOneHost = regexp.MustCompile(`^fence_(idrac|ilo\d?|imm|ipmilan|ipmilanplus|redfish)$`)

// checkEach warns of a method that takes all nodes for the same one.
func checkEach(at place, plugs map[string]string, texts ...string) {
	if len(plugs) > 1 && !slices.ContainsFunc(texts, fromCrumb.MatchString) {
		at.warn("the method does the same for each of these nodes: write {plug} where their words belong")
	}
}

// checkApart warns of two nodes that a method takes for the same one, unless the texts have more of them than the plug.
func checkApart(at place, plugs map[string]string, texts ...string) {
	if fromCrumb.MatchString(strings.ReplaceAll(strings.Join(texts, " "), "{plug}", "")) {
		return
	}
	of := map[string]string{}
	for _, node := range slices.Sorted(maps.Keys(plugs)) {
		if other := of[plugs[node]]; other != "" {
			at.key(node).warn("%s and %s have the same plug: fencing one switches off the other", other, node)
		}
		of[plugs[node]] = node
	}
}

// placeholders are those that filled fills in.
var placeholders = []string{"{service}", "{node}", "{plug}", "{host}", "{machine}", "{boot}", "{token}", "{session}", "{address}"}

// likeOne finds what looks like a placeholder, isOne one that is no variable of a shell, and likeVariable one that is written like that.
var (
	likeOne = regexp.MustCompile(`\{[A-Za-z_]+\}`)
	isOne   = regexp.MustCompile(`(?:^|[^$])(` + strings.Join(placeholders, "|") + `)`)

	likeVariable = regexp.MustCompile(`\$(` + strings.Join(placeholders, "|") + `)`)
)

// checkPlaceholders warns of what looks like a placeholder, and is none, and of one that is written as a variable.
func checkPlaceholders(at place, text string) {
	if found := likeVariable.FindStringSubmatch(text); found != nil {
		at.warn(`"$" before %s stays as it is: leave it out`, quoted(found[1]))
	}
	for _, word := range likeOne.FindAllString(filled(text), -1) {
		at.warn("%s is no placeholder, and stays as it is%s", quoted(word),
			cmp.Or(DidYouMean(word, placeholders), ": there are "+oneOf(placeholders)))
	}
}

// checkUnfilled warns of a placeholder where none is filled in.
func checkUnfilled(at place, text, instead string) {
	if found := isOne.FindStringSubmatch(text); found != nil {
		at.warn("nothing is filled in here, so %s stays as it is: %s", quoted(found[1]), instead)
	}
}

// checkWhom looks at what a breadcrumb would choose: any client that can write to ZooKeeper can write breadcrumbs.
func (h FenceHTTP) checkWhom(p place) {
	at := p.key("url")
	_, rest, _ := strings.Cut(h.URL, "://")
	authority, _, _ := strings.Cut(strings.NewReplacer("?", "/", "#", "/").Replace(rest), "/")
	if i := strings.LastIndexByte(authority, ':'); !strings.Contains(authority, "@") &&
		(strings.Contains(authority, "{address}") || i >= 0 && strings.ContainsAny(authority[i:], "{}")) {
		at.fault("a port cannot be filled in: write {plug} for the host, and the port after it")
		return
	}
	texts := []string{h.URL, h.Body}
	for _, value := range h.Headers {
		texts = append(texts, value)
	}
	switch {
	case len(h.Plugs) > 0:
		checkFilledIn(at, authority, true)
		checkFilledIn(at, strings.TrimPrefix(rest, authority), false)
		checkFilledIn(p.key("body"), h.Body, false)
		for _, name := range slices.Sorted(maps.Keys(h.Headers)) {
			checkFilledIn(p.key("headers").key(name), h.Headers[name], http.CanonicalHeaderKey(name) == "Host")
		}
	case fromCrumb.MatchString(authority) || ofChild.MatchString(authority):
		at.danger("the method will refuse, because the record of the active node would choose which server to ask: list the nodes, " +
			"as in plugs: {NODE: HOST}, and write {plug}")
	case slices.ContainsFunc(texts, fromCrumb.MatchString):
		at.danger("fences any node that the record of the active node gives, and any client that can write to ZooKeeper can write that: " +
			"list the nodes, as in plugs: {NODE: WORD}, and write {plug}")
	case h.URL != "" && !slices.ContainsFunc(texts, ofChild.MatchString):
		at.warn("the method does the same for every node, also for this one: list the nodes, as in plugs: {NODE: WORD}, and write {plug}")
	}
}

// filled is a text with an example in place of each placeholder.
func filled(text string) string {
	return strings.NewReplacer("[{plug}]", "[::1]", "[{node}]", "[::1]", "[{host}]", "[::1]", "{service}", "s", "{node}", "n",
		"{plug}", "p", "{host}", "h", "{machine}", "m", "{boot}", "b", "{token}", "1", "{session}", "0x1", "{address}", "h:1").Replace(text)
}
