package config

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"understudy/supervisor/safefile"
)

// wrappers run what is behind them, shells a file or the commands in a text, and interpreters a file.
var (
	wrappers = []string{
		"env", "timeout", "nice", "ionice", "chrt", "taskset", "flock", "stdbuf", "nohup", "setsid", "busybox", "time", "command",
	}
	shells       = []string{"sh", "bash", "dash", "ash", "ksh", "zsh"}
	interpreters = []string{"python", "python3", "perl", "ruby"}
)

var (
	assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)
	commands   = regexp.MustCompile("[;&|\n(){}`]")
	code       = regexp.MustCompile(`^(-\S* )*-[cem]( |$)`) // an interpreter runs no file
	quotes     = strings.NewReplacer(`"`, "", "'", "", `\`, "")
)

// executables looks at who can change the files that a command runs, also behind wrappers and in the text of a shell.
func (s *machineCheck) executables(p path, words Command, g Program, refuse bool) {
	if len(words) == 0 {
		return
	}
	// A program that is not found is told elsewhere.
	if name, _ := find(words[0], g); name != "" || slices.Contains(wrappers, words[0]) {
		s.programs(p, words, g, refuse, true)
	}
}

// programs looks at the first of the words that is a program, and at what that one runs. Options, their values and words of a shell are
// none, as far as no program is called so. anyRights: a file is run without the right to execute it.
func (s *machineCheck) programs(p path, words []string, g Program, refuse, anyRights bool) {
	for i, word := range words {
		if word == "" || word[0] == '-' || assignment.MatchString(word) {
			continue
		}
		name, err := find(word, g)
		if name == "" && anyRights && g.WorkingDir != "" {
			script := filepath.Join(g.WorkingDir, word)
			if info, err := os.Stat(script); err == nil && info.Mode().IsRegular() {
				name = script
			}
		}
		base := filepath.Base(word)
		switch {
		case errors.Is(err, syscall.EISDIR), err != nil && !anyRights, name == "":
			if !slices.Contains(wrappers, base) {
				continue
			}
		case filepath.IsAbs(name):
			s.own(p, name, safefile.Command, refuse)
		}
		text := quotes.Replace(strings.Join(words[i+1:], " "))
		switch rest := strings.Fields(text); {
		case slices.Contains(shells, base):
			for _, command := range commands.Split(text, -1) {
				s.programs(p, strings.Fields(command), g, refuse, true)
			}
		case slices.Contains(wrappers, base):
			s.programs(p, rest, g, refuse, false)
		case slices.Contains(interpreters, base) && !code.MatchString(text):
			s.programs(p, rest, g, refuse, true)
		}
		return
	}
}
