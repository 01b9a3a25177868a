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
	s := splitter{rest: line}
	for s.rest != "" {
		if err := s.next(); err != nil {
			return nil, err
		}
	}
	s.endWord()
	return s.words, nil
}

type splitter struct {
	rest   string
	words  []string
	word   strings.Builder
	inWord bool // an empty pair of quotes is a word too
}

func (s *splitter) take(text string, n int) {
	s.word.WriteString(text)
	s.inWord = true
	s.rest = s.rest[n:]
}

func (s *splitter) endWord() {
	if s.inWord {
		s.words = append(s.words, s.word.String())
	}
	s.word.Reset()
	s.inWord = false
}

func (s *splitter) next() error {
	switch c := s.rest[0]; c {
	case ' ', '\t', '\n', '\r':
		s.endWord()
		s.rest = s.rest[1:]
	case '\'':
		end := strings.IndexByte(s.rest[1:], '\'')
		if end < 0 {
			return errors.New("a single quote (') is not closed")
		}
		s.take(s.rest[1:1+end], end+2)
	case '"':
		return s.doubleQuoted()
	case '\\':
		switch {
		case len(s.rest) == 1:
			return errors.New("a backslash at the end quotes nothing")
		case s.rest[1] == '\n':
			s.rest = s.rest[2:]
		default:
			s.take(s.rest[1:2], 2)
		}
	case '|', '&', ';', '<', '>':
		return fmt.Errorf("no shell runs this, so %q would be an argument: quote it, or write [sh, -c, ...]", string(c))
	default:
		s.take(s.rest[:1], 1)
	}
	return nil
}

func (s *splitter) doubleQuoted() error {
	text := s.rest[1:]
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			s.take("", i+2)
			return nil
		case '\\':
			if i+1 == len(text) {
				continue
			}
			i++
			switch text[i] {
			case '\n':
			case '$', '`', '"', '\\':
				s.word.WriteByte(text[i])
			default:
				s.word.WriteString(text[i-1 : i+1])
			}
		default:
			s.word.WriteByte(text[i])
		}
	}
	return errors.New(`a double quote (") is not closed`)
}
