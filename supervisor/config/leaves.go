package config

import (
	"path/filepath"
	"slices"
	"strings"
)

// Leaves tells an operator who has to look what a oneshot leaves beside its process: a mounted directory or an address, else the words of
// its undo. An agent's parameters are not among them, since they may be secret, and others read this.
func (process Process) Leaves() (mount, address, undo string) {
	words := []string(process.Undo)
	switch at := slices.Index(words, "--"); {
	case process.Sets != nil:
		return "", process.Sets.IP.Addr(), ""
	case at > 1 && words[1] == "ocf" && at+1 < len(words):
		agent, params := words[at+1], words[at+2:]
		for _, param := range params {
			if directory, ok := strings.CutPrefix(param, "directory="); ok && agent == "heartbeat:Filesystem" {
				return directory, "", ""
			}
		}
		return "", "", "the stop action of " + agent
	case len(words) > 1 && (filepath.Base(words[0]) == "umount" || words[1] == "mount") && filepath.IsAbs(words[len(words)-1]):
		return words[len(words)-1], "", ""
	}
	return "", "", strings.Join(words, " ")
}
