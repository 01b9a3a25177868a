package config

import (
	"errors"
	"fmt"
	"strings"
)

// SplitWords splits a command as a POSIX shell would split words: blanks separate, single and double quotes and
// backslashes quote. Nothing is expanded: $, * and ~ stand for themselves. What only a shell could do (pipes,
// redirections, lists) is refused, since it would silently become an argument.
func SplitWords(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord, quote := false, byte(0) // an empty pair of quotes is a word too
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case quote != 0 && c == quote:
			quote = 0
		case c == '\\' && quote != '\'' && i+1 < len(line):
			i++
			if quote != 0 && strings.IndexByte("$`\"\\\n", line[i]) < 0 { // between double quotes it quotes nothing else
				word.WriteByte(c)
			}
			if line[i] != '\n' {
				word.WriteByte(line[i])
				inWord = true
			}
		case quote != 0:
			word.WriteByte(c)
		case c == '\'' || c == '"':
			quote, inWord = c, true
		case strings.IndexByte(" \t\n\r", c) >= 0:
			if inWord {
				words = append(words, word.String())
			}
			word.Reset()
			inWord = false
		case c == '\\':
			return nil, errors.New("a backslash at the end quotes nothing")
		case strings.IndexByte("|&;<>", c) >= 0:
			return nil, fmt.Errorf("no shell runs this, so %q would be an argument: quote it, or write [sh, -c, ...]", string(c))
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	switch {
	case quote == '\'':
		return nil, errors.New("a single quote (') is not closed")
	case quote == '"':
		return nil, errors.New(`a double quote (") is not closed`)
	case inWord:
		words = append(words, word.String())
	}
	return words, nil
}
