package unitfile

import (
	"regexp"
	"strconv"
	"strings"
)

// expand fills in the specifiers (%i, %t ...) that a file can answer. Others stay.
func (u *SystemdUnit) expand(text string) string {
	full := strings.TrimSuffix(u.Name, ".service")
	prefix, instance, _ := strings.Cut(full, "@")
	return strings.NewReplacer("%%", "%", "%n", u.Name, "%N", full, "%p", prefix, "%P", unescape(prefix),
		"%i", instance, "%I", unescape(instance), "%t", "/run", "%S", "/var/lib", "%C", "/var/cache", "%L", "/var/log",
		"%E", "/etc", "%T", "/tmp", "%V", "/var/tmp").Replace(text)
}

var escaped = regexp.MustCompile(`\\x[0-9a-fA-F]{2}`)

// unescape undoes `systemd-escape`: "-" was "/", and \xNN another character.
func unescape(name string) string {
	return escaped.ReplaceAllStringFunc(strings.ReplaceAll(name, "-", "/"), func(code string) string {
		n, _ := strconv.ParseUint(code[2:], 16, 8) // matched
		return string(rune(n))
	})
}

// words splits a line as systemd does: quotes keep words together, and a backslash escapes.
func words(line string) (all []string) {
	var word strings.Builder
	inside, quote := false, rune(0)
	escapes := map[rune]rune{'n': '\n', 't': '\t', 's': ' ', 'r': '\r'}
	runes := []rune(line)
	for i := 0; i < len(runes); i++ {
		c := runes[i]
		switch {
		case c == '\\' && i+1 < len(runes):
			i++
			c = runes[i]
			if to, ok := escapes[c]; ok {
				c = to
			}
			word.WriteRune(c)
			inside = true
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, inside = c, true
		case quote == 0 && (c == ' ' || c == '\t'):
			if inside {
				all = append(all, word.String())
			}
			word.Reset()
			inside = false
		default:
			word.WriteRune(c)
			inside = true
		}
	}
	if inside {
		all = append(all, word.String())
	}
	return all
}

// A run is a line of Exec...=.
type run struct {
	argv     []string
	quiet    bool // its failure does not matter
	asRoot   bool // User= and Group= do not hold for it (!)
	all      bool // nor does any setting that takes rights away (+)
	verbatim bool // $NAME stands for itself
}

func parseRun(line string) run {
	argv := words(line)
	if len(argv) == 0 {
		return run{}
	}
	name := strings.TrimLeft(argv[0], "@-:+!|")
	marks := strings.TrimSuffix(argv[0], name)
	argv[0] = name
	if strings.Contains(marks, "@") && len(argv) > 1 { // the second word is only what ps shows
		argv = append(argv[:1], argv[2:]...)
	}
	all := strings.Contains(marks, "+")
	asRoot := all || strings.Count(marks, "!") == 1 // !! is for kernels without ambient capabilities
	return run{argv, strings.Contains(marks, "-"), asRoot, all, strings.Contains(marks, ":")}
}

// mark is the sign that makes it run as root.
func (r run) mark() string {
	if r.all {
		return "+"
	}
	return "!"
}

// shellWord is a word that a shell takes as it is.
func shellWord(word string) string {
	if plain.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

var (
	variable = regexp.MustCompile(`\$(\{[A-Za-z_][A-Za-z0-9_]*\}|[A-Za-z_][A-Za-z0-9_]*)`)
	braced   = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*\}`)
	plain    = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)
)

// variables has a shell fill in what systemd would: $NAME as a word of its own becomes several words, ${NAME} stays within its word.
func variables(argv []string) []string {
	needed := false
	line := "set -f; exec"
	for _, word := range argv {
		alone := variable.FindString(word) == word && !strings.HasPrefix(word, "${")
		switch {
		case word != "" && alone:
			line += " " + word
			needed = true
		case braced.MatchString(word):
			line += ` "` + strings.NewReplacer(`"`, `\"`, "`", "\\`", `\`, `\\`, "$$", `\$`).Replace(word) + `"`
			needed = true
		default:
			line += " " + shellWord(strings.ReplaceAll(word, "$$", "$"))
		}
	}
	if needed {
		return []string{"sh", "-c", line}
	}
	for i := range argv {
		argv[i] = strings.ReplaceAll(argv[i], "$$", "$")
	}
	return argv
}
