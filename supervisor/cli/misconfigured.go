package cli

import (
	"fmt"
	"slices"
	"strings"

	"understudy/supervisor/config"
	"understudy/supervisor/control"
	"understudy/supervisor/printable"
)

// otherFiles tells which nodes of a service have different config files, once for all their services.
func otherFiles(services []control.ServiceStatus) (lines []string) {
	for _, v := range services {
		for i := 1; i < len(v.Files); i++ {
			run := "run"
			if len(v.Files[0]) == 1 {
				run = "runs"
			}
			line := fmt.Sprintf("%s %s another config file than %s: put the same file on every host.", strings.Join(v.Files[0], ", "), run,
				strings.Join(v.Files[i], ", "))
			if !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// misconfigured tells why a supervisor does not do what its config says now.
func misconfigured(to screen, n control.NodeStatus) []string {
	if n.Restart {
		keys, _, _ := strings.Cut(n.Fault, " changed")
		return to.paintAll(yellow, note(to.width,
			n.Node+" has a new config: the change to "+keys+" takes effect when understudy is restarted there."))
	}
	text, words := refused(n)
	return append(to.paintAll(red, note(to.width, text)), command(to.width, words...)...)
}

// refused tells that a supervisor does not take its new config, and with which command all errors show.
func refused(n control.NodeStatus) (text string, words []string) {
	words = []string{"understudy check"}
	if n.Config != "" && n.Config != config.DefaultFile {
		words = append(words, "--config "+printable.Word(n.Config))
	}
	return n.Node + " keeps its previous config: " + n.Fault + ". To see all errors, on " + n.Node + ":", words
}

// unheard tells what a node cannot do for people and clients.
func (to paper) unheard(s control.Status) (lines []string) {
	for _, n := range s.Nodes {
		for _, words := range unheard(n) {
			lines = append(lines, to.paintAll(red, note(to.width, words))...)
		}
	}
	return lines
}

func unheard(n control.NodeStatus) (lines []string) {
	if n.Untold != "" {
		lines = append(lines, n.Node+" cannot tell people what happens, because notify fails: "+n.Untold+". It tries again.")
	}
	if n.Unserved != "" {
		lines = append(lines, n.Node+" does not serve HTTP at "+n.Unserved+". It tries again.")
	}
	return lines
}

// warned lists the dangerous settings, each once with all nodes that have it.
func warned(nodes []control.NodeStatus) (lines []string) {
	var texts []string
	by := map[string][]string{}
	for _, n := range nodes {
		for _, w := range n.Warnings {
			if by[w] == nil {
				texts = append(texts, w)
			}
			by[w] = append(by[w], n.Node)
		}
	}
	for _, w := range texts {
		lines = append(lines, "Warning, on "+strings.Join(by[w], ", ")+": "+w)
	}
	return lines
}
