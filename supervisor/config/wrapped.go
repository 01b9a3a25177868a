package config

import (
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"understudy/supervisor/safefile"
)

// wrapper is a program, or a word of a shell, that runs what is behind it.
type wrapper struct {
	valued   string   // the options that have a value, which may be the next word
	long     []string // the same, by their long names
	operands int      // before the command
}

var wrappers = map[string]wrapper{
	"env":     {valued: "uC", long: []string{"--unset", "--chdir"}},
	"timeout": {valued: "ks", long: []string{"--kill-after", "--signal"}, operands: 1},
	"nice":    {valued: "n", long: []string{"--adjustment"}},
	"ionice":  {valued: "cn", long: []string{"--class", "--classdata"}},
	"chrt":    {valued: "TPD", operands: 1},
	"taskset": {operands: 1},
	"flock":   {valued: "wE", long: []string{"--wait", "--timeout", "--conflict-exit-code"}, operands: 1},
	"stdbuf":  {valued: "ioe", long: []string{"--input", "--output", "--error"}},
	"nohup":   {}, "setsid": {}, "busybox": {},
	".": {}, "source": {}, "exec": {}, "command": {}, "time": {}, "!": {},
	"if": {}, "then": {}, "elif": {}, "else": {}, "while": {}, "until": {}, "do": {},
}

// shells run a file, or with -c a text; interpreters a file.
var (
	shells       = []string{"sh", "bash", "dash", "ash", "ksh", "zsh"}
	interpreters = []string{"python", "python3", "perl", "ruby"}
)

var (
	assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)
	commands   = regexp.MustCompile("[;&|\n(){}`]")
	quotes     = strings.NewReplacer(`"`, "", "'", "", `\`, "")
)

// executables looks at who can change the files that a command runs, also behind wrappers and in the text of a shell.
func (s *machineCheck) executables(p path, words Command, g Program, refuse bool) {
	for len(words) > 0 && assignment.MatchString(words[0]) {
		words = words[1:]
	}
	if len(words) == 0 || words[0] == "" {
		return
	}
	name, err := find(words[0], g) // a program that is not found is told elsewhere, and so is a directory
	if name != "" && !errors.Is(err, syscall.EISDIR) && (filepath.IsAbs(name) || !strings.Contains(words[0], "/")) {
		s.own(p, name, safefile.Command, refuse)
	}
	base := filepath.Base(words[0])
	if w, is := wrappers[base]; is {
		rest := w.behind(words[1:], base == "env")
		if len(rest) > 0 && rest[0] == "-c" { // of flock
			rest = append([]string{"sh"}, rest...)
		}
		s.executables(p, rest, g, refuse)
		return
	}
	switch script, text := script(base, words[1:]); {
	case script == "":
	case text:
		for _, command := range commands.Split(script, -1) {
			s.executables(p, strings.Fields(quotes.Replace(command)), g, refuse)
		}
	case filepath.IsAbs(script):
		s.own(p, script, safefile.Command, refuse)
	case g.WorkingDir != "":
		s.own(p, filepath.Join(g.WorkingDir, script), safefile.Command, refuse)
	}
}

// behind is the command in the words that follow a wrapper.
func (w wrapper) behind(words []string, splits bool) []string {
	for len(words) > 0 && strings.HasPrefix(words[0], "-") {
		word := words[0]
		words = words[1:]
		if text, is := strings.CutPrefix(word, "-S"); is && splits { // of env: a text that it splits
			if text == "" && len(words) > 0 {
				text, words = words[0], words[1:]
			}
			return append(strings.Fields(quotes.Replace(text)), words...)
		}
		if word == "--" {
			break
		}
		if len(words) > 0 && (slices.Contains(w.long, word) || word[1:] != "" && word[1] != '-' && w.takesNext(word[1:])) {
			words = words[1:]
		}
	}
	return words[min(w.operands, len(words)):]
}

// takesNext reports whether the next word is the value of one of these options, as getopt has it.
func (w wrapper) takesNext(letters string) bool {
	i := strings.IndexAny(letters, w.valued)
	return i >= 0 && i == len(letters)-1
}

// script is the file, or the text, that a shell or an interpreter runs; "": there is none.
func script(base string, words []string) (script string, text bool) {
	shell := slices.Contains(shells, base)
	if !shell && !slices.Contains(interpreters, base) {
		return "", false
	}
	for i := 0; i < len(words); i++ {
		word := words[i]
		switch {
		case !strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "+"):
			return word, text
		case shell && slices.Contains([]string{"-o", "-O", "+o", "+O", "--rcfile", "--init-file"}, word):
			i++
		case shell:
			text = text || !strings.HasPrefix(word, "--") && word[0] == '-' && strings.Contains(word, "c")
		case slices.Contains([]string{"-c", "-e", "-m"}, word): // code, or a module
			return "", false
		}
	}
	return "", false
}
