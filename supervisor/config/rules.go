package config

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"understudy/supervisor/printable"
)

// nameFault says why a name cannot be that of a znode, a cgroup and a label at once; "" when it can.
func nameFault(name string) string {
	const longest = 128
	switch {
	case name == "":
		return "a name must not be empty"
	case len(name) > longest:
		return fmt.Sprintf("a name of %d characters is too long: %d are allowed", len(name), longest)
	case strings.HasPrefix(name, "."):
		return quoted(name) + ": a name must not start with a dot"
	case strings.HasPrefix(name, "-"): // every command would take it for a flag
		return quoted(name) + ": a name must not start with -"
	case !printable.IsName(name):
		return quoted(name) + " is not a name: letters, digits and . _ - @ : are allowed"
	}
	return ""
}

func checkChoice[T interface {
	~string
	choice
}](p place, word T) {
	if message := mustBeOneOf(string(word), word.choices()); message != "" {
		p.fault("%s", message)
	}
}

func mustBeOneOf(word string, words []string) string {
	if slices.Contains(words, word) {
		return ""
	}
	return fmt.Sprintf("%s must be %s%s", quoted(word), oneOf(words), DidYouMean(word, words))
}

func checkAbsolute(p place, name string) {
	switch {
	case !strings.HasPrefix(name, "/"):
		p.fault("%s must be an absolute path", quoted(name))
	case strings.ContainsRune(name, 0):
		p.fault("a path must not contain a NUL character")
	}
}

// checkFile checks the path of a file, which may be missing unless it is said what it holds.
func checkFile(p place, name, holds string) {
	switch {
	case name != "":
		checkAbsolute(p, name)
	case holds != "":
		p.fault("missing: name the file that holds %s", holds)
	}
}

func checkPath(p place, name string) {
	if name != "" || p.given() {
		checkAbsolute(p, name)
	}
}

// checkSecretFile checks the path of a file that holds a secret. The path may be the secret itself, which no log shall show.
func checkSecretFile(p place, file, what string, needed bool) {
	switch {
	case file == "" && (needed || p.given()):
		p.fault("missing: name the file that holds %s", what)
	case file == "":
	case !strings.HasPrefix(file, "/"):
		p.fault("must be the absolute path of a file that holds %s", what)
	default:
		checkAbsolute(p, file)
	}
}

// checkAddress checks host:port, in which the host may be missing for this one.
func checkAddress(p place, address string) {
	if address == "" {
		if p.given() {
			p.fault("is empty: write host:port")
		}
		return
	}
	host, port, err := net.SplitHostPort(address)
	switch n, bad := strconv.ParseUint(port, 10, 16); {
	case strings.Contains(address, "://"):
		p.fault("%s: write host:port without a scheme", quoted(address))
	case err != nil:
		if bare, err := strconv.ParseUint(address, 10, 16); err == nil && bare > 0 {
			everywhere := ""
			if at := p.keys[0]; at[len(at)-1] == "listen" {
				everywhere = ", or :" + address + " for all addresses"
			}
			p.fault("%s is not host:port, write 127.0.0.1:%s%s", quoted(address), address, everywhere)
			return
		}
		p.fault("%s is not host:port, such as 127.0.0.1:6379 or [::1]:6379", quoted(address))
	case bad != nil || n == 0:
		p.fault("%s: the port must be a number from 1 to 65535", quoted(address))
	case !isPrintable(host) || strings.ContainsAny(host, " /?#@\"'"):
		p.fault("%s contains a character that is part of no host name", quoted(address))
	}
}

func checkURL(p place, address string) {
	if address == "" {
		if p.given() {
			p.fault("is empty: write a URL")
		}
		return
	}
	u, err := url.Parse(address)
	switch {
	case err != nil:
		p.fault("%s is not a URL such as http://127.0.0.1:8080/healthz", quoted(address))
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Opaque != "":
		p.fault("%s must start with http:// or https:// and a host, as http://127.0.0.1:8080/healthz does", quoted(address))
	case u.User != nil:
		p.fault("a password does not belong in this file")
	}
}

// check judges the words of a command. The caller judges whether there may be none.
func (words Command) check(p place) {
	if len(words) > 0 && strings.TrimSpace(words[0]) == "" {
		p.fault("the program's name is empty")
		return
	}
	for i, word := range words {
		if strings.ContainsRune(word, 0) {
			p.item(i).and(p).fault("an argument must not contain a NUL character")
		}
	}
	if len(words) > 1 && filepath.Base(words[0]) == "nohup" {
		p.warn("nohup has the program ignore SIGHUP, with which a reload is ordered: leave it out")
	}
	if i := slices.IndexFunc(words, shellOnly.MatchString); i >= 0 && !slices.Contains(shells, filepath.Base(words[0])) {
		p.item(i).and(p).warn("no shell runs this, so %s stays as it is: write the value, or [sh, -c, ...]", quoted(words[i]))
	}
}

// shellOnly is one word with a variable, as the environment has them, a command, or a home, which only a shell would replace.
var shellOnly = regexp.MustCompile(`^(\S*(\$[A-Z_{(]|` + "`" + `)|~/)\S*$`)

// checkGiven also refuses a command that is written and empty.
func (words Command) checkGiven(p place) {
	if len(words) == 0 && p.given() {
		p.fault("is empty: say which program to run, or leave the key out")
	}
	words.check(p)
}

var accountName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@-]*\$?$`)

// checkAccount checks the name of a user or group. Whether it exists is looked up on the machine that needs it.
func checkAccount(p place, name string) {
	switch {
	case name == "" && !p.given():
	case name == "":
		p.fault("is empty: name one, or leave the key out")
	case !accountName.MatchString(name) || len(name) > 256:
		p.fault("%s is not a name or number: write one of them, such as redis or 105", quoted(name))
	}
}

func checkBetween(p place, n, least, most int) {
	if n < least || n > most {
		p.fault("%d is not a number from %d to %d", n, least, most)
	}
}

// longest bounds durations: more is a slip, and sums of it would overflow.
const longest = 365 * 24 * time.Hour

func checkNotNegative(p place, d time.Duration) bool {
	switch {
	case d < 0:
		p.fault("must not be negative: %v", d)
	case d > longest:
		p.fault("%v is more than a year", d)
	default:
		return true
	}
	return false
}

func checkPositive(p place, d time.Duration) bool {
	if d == 0 {
		p.fault("must be positive, not %v", d)
		return false
	}
	return checkNotNegative(p, d)
}

// isPrintable reports whether text is of characters that a znode's name may have and a terminal shows.
func isPrintable(text string) bool {
	return utf8.ValidString(text) && strings.IndexFunc(text, func(r rune) bool {
		return !unicode.IsPrint(r) || r > 0xffef
	}) < 0
}

// quoted shows a value, whatever it holds.
func quoted(text string) string { return strconv.Quote(shorten(text)) }
