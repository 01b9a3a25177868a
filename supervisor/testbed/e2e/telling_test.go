package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/control"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// Whoever is on duty may be the node that dies.
func TestPeopleAreToldOfATakeoverWhoeverDies(t *testing.T) {
	f := newFleet(t, 1, 5*time.Millisecond)
	dir := t.TempDir()
	script := filepath.Join(dir, "tell")
	page, err := os.ReadFile("../../../docs/config.md")
	must.OK(t, err)
	block := regexp.MustCompile("(?s)<!-- typed: tell -->\n```sh\n(.*?)```").FindSubmatch(page)
	if block == nil || strings.Count(string(block[1]), "sendmail root") != 1 {
		t.Fatal("docs/config.md has no script that sends mail")
	}
	text := strings.Replace(string(block[1]), "sendmail root", "cat >>"+dir+"/mail", 1)
	must.OK(t, os.WriteFile(script, []byte(text+"printf '%s\\n' \"$UNDERSTUDY_NOTICE\" >>"+dir+"/told\n"), 0o700))
	supervisors := map[string]*kit.Supervisor{}
	for _, node := range []string{"a", "b"} {
		h := f.Lab.Machine(t, node)
		path := filepath.Join(dir, node+".yaml")
		must.OK(t, os.WriteFile(path, []byte(f.Text(h)+"notify: {exec: ["+script+"]}\n"), 0o600))
		supervisors[node] = f.FromFile(t, h, path)
		f.AllOn(t, "a", 0)
	}
	kit.Until(t, soon, "somebody is on duty, and has looked", func() bool { _, ok := f.Get("notices"); return ok })
	supervisors["a"].Kill9()
	f.AllOn(t, "b", 0)
	var all []control.Event
	kit.Until(t, 2*time.Minute, "they are told", func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "told"))
		all = nil
		for line := range strings.Lines(string(text)) {
			var n control.Notice
			must.OK(t, json.Unmarshal([]byte(line), &n))
			all = append(all, n.Events...)
		}
		return err == nil && len(all) > 0
	})
	if len(all) != 1 || all[0].Event != "takeover" || all[0].Node != "b" || all[0].Ended.Node != "a" || !strings.Contains(all[0].Text, "nothing ran for") {
		t.Errorf("told %+v", all)
	}
	if mail, err := os.ReadFile(dir + "/mail"); err != nil || !strings.HasPrefix(string(mail), "Subject: understudy\n\ns0000: b has taken over from a ") {
		t.Errorf("mail: %q, %v", mail, err)
	}
}
