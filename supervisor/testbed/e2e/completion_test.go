package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// offers is what the shell's script is told for a command line, without descriptions.
func (p *play) offers(t *testing.T, words ...string) []string {
	t.Helper()
	r := p.Lab.Here("op").Ask(t, append([]string{"__complete"}, words...)...)
	if r.Code != 0 {
		t.Fatalf("%v: %+v", words, r)
	}
	var all []string
	for line := range strings.Lines(r.Out) {
		if line != ":4\n" { // which is: and no file names
			all = append(all, strings.TrimSuffix(strings.Split(line, "\t")[0], "\n"))
		}
	}
	slices.Sort(all)
	return all
}

// offered waits until the shell's script is told just that: servers that take more than a moment to answer are not waited for.
func (p *play) offered(t *testing.T, want []string, words ...string) {
	t.Helper()
	var got []string
	if !kit.Reached(soon, func() bool { got = p.offers(t, words...); return slices.Equal(got, want) || len(got) > 0 }) || !slices.Equal(got, want) {
		t.Errorf("%v: %q, want %q", words, got, want)
	}
}

func TestServicesAndNodesAreCompleted(t *testing.T) {
	p := newPlay(t, stage(t))
	p.OnTwoHosts(t)
	service := p.Options.Service
	for _, c := range []struct{ command, rest, want string }{
		{"status", "", service}, {"history", "", service}, {"switchover", "", service}, {"pause", "", service}, {"resume", "", service},
		{"stop", "", service}, {"start", "", service}, {"restart", "", service}, {"reload", "", service}, {"reclone", "", service},
		{"fence confirm", "", service}, {"forget", "", service}, {"drain", "", "a b"}, {"undrain", "", "a b"},
		{"switchover", service + " --to", "a b"}, {"reclone", service + " --node", "a b"}, {"restart", service + " --node", "a b"},
		{"fence confirm", service + " --node", "a b"},
		{"switchover", service, ""}, // one is enough
	} {
		words := append(p.asking(strings.Fields(c.command)...), strings.Fields(c.rest)...)
		p.offered(t, strings.Fields(c.want), append(words, "")...)
	}
	p.offered(t, []string{service}, "logs", "--config", p.Config(t, p.Lab.Machine(t, "m"), "", "command: [sleep, '1']"), "")
}

// A key was pressed: who waits for servers that do not answer is offered nothing, soon and without a word.
func TestCompletionIsSilentWhenNothingAnswers(t *testing.T) {
	p := brief(t, stage(t))
	op := p.Lab.Host(t, "op")
	op.Cut(t)
	for _, words := range [][]string{
		p.asking("status"), {"status", "--zk", "127.0.0.1:1"}, {"status"}, {"status", "--config", "/no/such"}, {"logs", "--config", "/no/such"},
	} {
		r := op.Ask(t, append(append([]string{"__complete"}, words...), "")...)
		if r.Code != 0 || r.Out != ":4\n" || strings.Contains(r.Err, "rror") {
			t.Errorf("%v: %+v", words, r)
		}
	}
}

// What the shells themselves make of it, with a service that is called like no file.
func TestShellsComplete(t *testing.T) {
	need.These(t, "shells")
	p := brief(t, stage(t))
	p.OnTwoHosts(t)
	bin := t.TempDir()
	must.OK(t, os.Symlink(kit.UnderstudyBinary(t), filepath.Join(bin, "understudy")))
	env := []string{
		"PATH=" + bin + ":" + os.Getenv("PATH"), "UNDERSTUDY_ZK=" + strings.Join(p.Options.ZK, ","), "TERM=dumb", "HOME=" + t.TempDir(), "PS1=$ ",
		"UNDERSTUDY_BINARY=", "INPUTRC=/dev/null",
	}
	asks := "understudy status --root " + p.Options.Root + " "
	for shell, c := range map[string]struct {
		args  []string
		setup string
	}{
		"bash": {[]string{"--norc", "--noprofile", "-i"}, ". /usr/share/bash-completion/bash_completion; bind 'set show-all-if-ambiguous on'; source <(understudy completion bash)\n"},
		"zsh":  {[]string{"-f", "-i"}, "autoload -U compinit; compinit -D -u; source <(understudy completion zsh)\n"},
		"fish": {[]string{"--no-config", "-i"}, "understudy completion fish | source\n"},
	} {
		t.Run(shell, func(t *testing.T) {
			if shell == "fish" { // which wants a terminal that answers its questions
				out := p.Lab.Here("op").TerminalOf(t, 24, 200, env, shell, "--no-config", "-c",
					"understudy completion fish | source; complete -C '"+asks+"'")
				if code := out.ExitCode(t, soon); code != 0 || !strings.HasPrefix(out.Since(0), p.Options.Service) {
					t.Fatalf("code %d: %q", code, out.Raw())
				}
				return
			}
			term := p.Lab.Here("op").TerminalOf(t, 24, 200, env, shell, c.args...)
			term.Type(t, c.setup+"echo rea''dy\n")
			kit.Until(t, soon, "the shell is ready, and prompts", func() bool { // until then the terminal echoes what is typed
				_, after, ok := strings.Cut(term.Since(0), "ready\n")
				return ok && strings.HasSuffix(after, "$ ")
			})
			n := term.Len()
			term.Type(t, asks+"\t")
			pressed := time.Now()
			kit.Until(t, soon, "the only service is filled in", func() bool {
				_, completed, ok := strings.Cut(term.Since(n), p.Options.Root+" ")
				if ok && strings.HasPrefix(strings.TrimLeft(completed, "\a"), p.Options.Service) {
					return true
				}
				if time.Since(pressed) > 2*time.Second { // servers that take more than a moment are not waited for: a person presses it again
					term.Type(t, "\t")
					pressed = time.Now()
				}
				return false
			})
			term.Type(t, "\x03exit\n")
		})
	}
}
