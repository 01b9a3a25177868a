package printable

import (
	"net"
	"regexp"
	"strconv"
)

// What others wrote is a name only if it cannot mean anything else in a command, an environment or a URL: it does not look like an option,
// or like .. in a path, and does not end the text around it.
var (
	plainName    = regexp.MustCompile(`^[A-Za-z0-9_@:][A-Za-z0-9._@:-]*$`)
	plainHost    = regexp.MustCompile(`^[A-Za-z0-9_:][A-Za-z0-9._:-]*$`)
	plainAddress = regexp.MustCompile(`^[A-Za-z0-9_:[][][A-Za-z0-9._:%-]*$`)
)

// longestName bounds all three. A host's name with a port is shorter.
const longestName = 260

func isPlain(text string, form *regexp.Regexp) bool {
	return len(text) <= longestName && form.MatchString(text)
}

// IsName reports whether text is plainly the name of a node, or a word such as an id.
func IsName(text string) bool { return isPlain(text, plainName) }

// IsHost reports whether text is plainly a host's name, or an address without a port.
func IsHost(text string) bool { return isPlain(text, plainHost) }

// IsAddress reports whether text is plainly a host with a port.
func IsAddress(text string) bool { return isPlain(text, plainAddress) }

// SplitPort parts a host from its port; port is "" where text is plainly a host alone, or neither.
func SplitPort(text string) (host, port string) {
	host, port, err := net.SplitHostPort(text)
	if n, wrong := strconv.ParseUint(port, 10, 16); err != nil || wrong != nil || n == 0 || !IsHost(host) {
		return text, ""
	}
	return host, port
}
