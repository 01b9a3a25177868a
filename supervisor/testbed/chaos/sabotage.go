package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// sabotage breaks the real code in one way: a piece of text that a file has exactly once is replaced.
type sabotage struct {
	name           string
	file, old, new string
	only, last     string // the faults that show it, and how long they have to last; empty: as long as they do
	shows          string // as what
}

var sabotages = []sabotage{
	{ // first: it takes longest
		name: "the agents' former secret is invalid at once", file: "fencing/agent/keys.go", only: "agents' secret",
		old: "	return all, nil\n", new: "	return all[:1], nil\n", shows: "stuck",
	},
	{
		name: "the lease outlives the session", file: "election/lease.go", only: "cable pulled", last: "12s",
		old: "sent+LeaseLength(l.timeout), l.extended", new: "sent+time.Hour, l.extended", shows: "overlap",
	},
	{
		name: "the lock is given back before the tree is dead", file: "supervisor/service/end.go", only: "supervisor stopped", last: "1s",
		old:   "	e := t.prove(ctx)\n",
		new:   "	_ = t.claim.Release(context.WithoutCancel(ctx))\n	wait.For(context.WithoutCancel(ctx), 300*time.Millisecond)\n	e := t.prove(ctx)\n",
		shows: "overlap",
	},
	{
		name: "tokens decrease", file: "supervisor/unit/unit.go", only: "supervisor stopped", last: "1s",
		old: "\"UNDERSTUDY_TOKEN=\" + strconv.FormatInt(token, 10)", new: "\"UNDERSTUDY_TOKEN=\" + strconv.FormatInt(1<<40-token, 10)", shows: "token",
	},
	{
		name: "an agent believes anybody", file: "fencing/agent/keys.go", only: "strangers", last: "4s",
		old: "if hmac.Equal(mac, seal(secret, purpose, nonce, body)) {", new: "if hmac.Equal(mac, mac) {", shows: "stranger",
	},
	{
		name: "everybody may change new znodes", file: "election/session.go", only: "strangers", last: "4s",
		old: "return zk.AuthACL(zk.PermAll)", new: "return zk.WorldACL(zk.PermAll)", shows: "stranger",
	},
}

func sabotageNames() string {
	var all []string
	for _, s := range sabotages {
		all = append(all, fmt.Sprintf("%q", s.name))
	}
	return strings.Join(all, ", ")
}

// sabotaged builds an Understudy that is broken. It has to be called in the module's root.
func sabotaged(name, dir string) (exe string, err error) {
	for _, s := range sabotages {
		if s.name == name {
			return s.build(dir)
		}
	}
	return "", fmt.Errorf("there is no sabotage %q, only %s", name, sabotageNames())
}

func (s sabotage) build(dir string) (exe string, err error) {
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	path := filepath.Join(strings.TrimSpace(string(module)), s.file)
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), s.old); n != 1 {
		return "", fmt.Errorf("%s: what is to be replaced is there %d times; fit the sabotage to the code: %s", s.file, n, s.old)
	}
	laid := filepath.Join(dir, "sabotaged.go")
	if err := os.WriteFile(laid, []byte(strings.Replace(string(text), s.old, s.new, 1)), 0o600); err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{path: laid}})
	if err != nil {
		return "", err
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return "", err
	}
	exe = filepath.Join(dir, "understudy-sabotaged")
	if out, err := exec.Command("go", "build", "-overlay", list, "-o", exe, "understudy").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build with %q: %w\n%s", s.name, err, out)
	}
	return exe, nil
}
