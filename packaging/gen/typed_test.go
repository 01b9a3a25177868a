package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"understudy/supervisor/cli"
	"understudy/supervisor/testbed/must"
)

var (
	shellBlock  = regexp.MustCompile("(?m)^( *)```sh\n(?s:(.*?))^ *```$")
	commandSpan = regexp.MustCompile("`(understudy [^`]+)`")
	ofShell     = regexp.MustCompile(`"[^"]*"|'[^']*'|\S+`) // enough for what the pages have
	optional    = regexp.MustCompile(`\[([^\]]*)\]`)
)

// Whoever types a command line of a page, or of a manual page, finds its command, its flags and its arguments accepted. It is parsed, not
// run.
func TestCommandLinesOfThePagesAreAccepted(t *testing.T) {
	typed, named := 0, 0
	for page, text := range texts(t) {
		for _, block := range shellBlock.FindAllStringSubmatch(text, -1) {
			for line := range strings.Lines(strings.ReplaceAll(block[2], "\\\n", " ")) {
				words := ofShell.FindAllString(line, -1)
				if len(words) == 0 || strings.TrimPrefix(words[0], "./") != "understudy" {
					continue
				}
				typed++
				if err := accepted(words[1:]); err != nil {
					t.Errorf("%s: %s: %v", page, strings.TrimSpace(line), err)
				}
			}
		}
		for _, span := range commandSpan.FindAllStringSubmatch(shellBlock.ReplaceAllString(text, ""), -1) {
			named++
			line := optional.ReplaceAllString(strings.ReplaceAll(span[1], "bash|zsh|fish", "bash"), "$1")
			words := ofShell.FindAllString(line, -1)
			if found, rest, err := cli.Root("", "").Find(words[1:]); err == nil && len(rest) == 0 && found.HasParent() {
				continue // the command's name, not a line
			}
			if err := accepted(words[1:]); err != nil {
				t.Errorf("%s: %s: %v", page, span[1], err)
			}
		}
	}
	if typed < 15 || named < 150 {
		t.Errorf("only %d lines were typed, and %d named", typed, named)
	}
}

// accepted parses a command line as Main does, with a comment or a redirection behind it, and runs nothing.
func accepted(words []string) error {
	for i, word := range words {
		if strings.HasPrefix(word, "#") || strings.HasPrefix(word, ">") || word == "|" || word == "&&" {
			words = words[:i]
			break
		}
	}
	found, rest, err := cli.Root("", "").Find(words)
	if err != nil {
		return err
	}
	found.InitDefaultHelpFlag()
	if err := found.ParseFlags(rest); err != nil {
		return err
	}
	if help, err := found.Flags().GetBool("help"); err == nil && help {
		return nil
	}
	return found.ValidateArgs(found.Flags().Args())
}

// texts are the pages, the texts of the commands, which the manual pages are made of, and the config that is installed.
func texts(t *testing.T) map[string]string {
	t.Helper()
	all := pages(t)
	delete(all, "CHANGELOG.md") // some of it was so
	installed, err := os.ReadFile("../etc/understudy.yaml")
	must.OK(t, err)
	all["understudy.yaml"] = string(installed)
	var add func(*cobra.Command)
	add = func(c *cobra.Command) {
		all[c.CommandPath()+" --help"] = fmt.Sprintf("%s\n%s\n```sh\n%s\n```\n", c.Long, c.Flags().FlagUsages(), c.Example)
		for _, sub := range visible(c) {
			add(sub)
		}
	}
	add(cli.Root("", ""))
	return all
}

// Each block of commands is one that a shell reads.
func TestShellBlocksOfThePagesAreShell(t *testing.T) {
	n := 0
	for page, text := range pages(t) {
		for _, block := range shellBlock.FindAllStringSubmatch(text, -1) {
			n++
			sh := exec.Command("sh", "-n")
			sh.Stdin = strings.NewReader(strings.ReplaceAll("\n"+block[2], "\n"+block[1], "\n"))
			if out, err := sh.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s%s", page, err, out, block[2])
			}
		}
	}
	if n < 20 {
		t.Errorf("only %d blocks", n)
	}
}
