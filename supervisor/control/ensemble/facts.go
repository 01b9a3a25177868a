package ensemble

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// facts are a server's settings, by their names in zoo.cfg.
type facts map[string]string

// parse reads lines key=value, as in zoo.cfg and in the answer to the word conf.
func parse(text string) facts {
	f := facts{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if key, value, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			f[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	return f
}

func (f facts) number(key string) (n int, ok bool) {
	n, err := strconv.Atoi(f[key])
	return n, err == nil
}

func (f facts) milliseconds(key string) time.Duration {
	n, _ := f.number(key)
	return time.Duration(n) * time.Millisecond
}

// voters counts the servers that elect a leader; 0: not known.
func (f facts) voters() (n int) {
	for key, value := range f {
		if strings.HasPrefix(key, "server.") && !strings.Contains(value, ":observer") {
			n++
		}
	}
	return n
}

var versionNumber = regexp.MustCompile(`^\d+\.\d+\.\d+`)

// summary reads the answer to the word srvr.
func summary(text string) (version, mode string) {
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "Zookeeper version":
			version = versionNumber.FindString(value)
		case "Mode":
			mode = value
		}
	}
	return version, mode
}
