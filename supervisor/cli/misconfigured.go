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
			n.Node+" has a new config. What changed in "+keys+" takes effect when understudy is restarted there."))
	}
	lines := to.paintAll(red, note(to.width, n.Node+" keeps its previous config: "+n.Fault+". To see all errors, on "+n.Node+":"))
	words := []string{"understudy check"}
	if n.Config != "" && n.Config != config.DefaultFile {
		words = append(words, "--config "+printable.Word(n.Config))
	}
	return append(lines, command(to.width, words...)...)
}

// untold tells why people are not told what happens.
func (to paper) untold(s control.Status) (lines []string) {
	for _, n := range s.Nodes {
		if n.Untold != "" {
			lines = append(lines, to.paintAll(red, note(to.width, untold(n)))...)
		}
	}
	return lines
}

func untold(n control.NodeStatus) string {
	return n.Node + " cannot tell people what happens, because notify fails: " + n.Untold + ". It tries again."
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
