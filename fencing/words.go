package fencing

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// fill puts the facts of a target in place of {node}, {host} and so on. Nothing of them can mean anything else there: plain
// has seen to it.
func (t Target) fill(text string, more ...string) string {
	return strings.NewReplacer(append([]string{
		"{service}", t.Service, "{node}", t.Node, "{host}", t.Host, "{machine}", t.Machine, "{boot}", t.Boot,
		"{token}", strconv.FormatInt(t.Token, 10), "{session}", t.Session, "{address}", t.Address,
	}, more...)...).Replace(text)
}

// largestSecret bounds what is read from a file that should hold a password or a key.
const largestSecret = 64 << 10

// secret reads a file that holds one secret line. What it holds is in no error.
func secret(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read a secret: %w", err)
	}
	line := strings.TrimRight(string(text), "\r\n")
	if line == "" || len(line) > largestSecret || strings.ContainsAny(line, "\r\n\x00") {
		return "", fmt.Errorf("read a secret: %s must hold one line", file)
	}
	return line, nil
}

// mask takes secrets out of a text that is to be shown.
func mask(text string, secrets ...string) string {
	for _, s := range secrets {
		text = strings.ReplaceAll(text, s, "***")
	}
	return text
}

// mask takes secrets out of an output, also one whose beginning was cut off at the end of what is kept.
func (t *tail) mask(secrets ...string) *tail {
	text := string(t.text)
	if t.dropped {
		for _, s := range secrets {
			for n := len(s) - 1; n > 0; n-- {
				if rest, cut := strings.CutPrefix(text, s[len(s)-n:]); cut {
					text = rest
					break
				}
			}
		}
	}
	t.text = []byte(mask(text, secrets...))
	return t
}
