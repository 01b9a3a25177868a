package unitfile_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"understudy/supervisor/config/unitfile"
)

// A unit of another user is imported by root. Whatever it says, it becomes one service, and what is a comment here is one to YAML, which
// ends a line at five characters.
func FuzzAUnitBecomesOneService(f *testing.F) {
	const more = "services: {evil: {command: id}}"
	for _, end := range []string{"\n", "\r", "\u0085", "\u2028", "\u2029"} {
		f.Add("x", "NeverHeardOf="+end+more)
		f.Add("x", "NeverHeardOf"+end+more+"=1")
		f.Add("x", "Environment=A=b"+end+more+"\nExecStartPre=/bin/true "+end+"x")
		f.Add("x", "ExecStart=\nExecStart=/usr/sbin/nginx 'a"+end+more+"'")
		f.Add("x"+end+more, "Restart=always")
		f.Add("x"+end+"  evil: {command: id}", "Type=forking")
	}
	f.Add("~", "0")
	f.Add("x", `ExecStart=`+"\n"+`ExecStart=/usr/sbin/nginx 'a\n`+more+`'`)
	f.Add("x", `ExecStart=`+"\n"+`ExecStart=/usr/sbin/nginx 'a\x0d`+more+`'`)
	f.Fuzz(func(t *testing.T, name, settings string) {
		file := filepath.Join(t.TempDir(), strings.ReplaceAll(name, "/", "")+".service")
		if os.WriteFile(file, []byte("[Service]\nExecStart=/usr/bin/x\n"+settings+"\n"), 0o600) != nil {
			return // no name of a file
		}
		unit, err := unitfile.Load("", file)
		if err != nil {
			return
		}
		text, err := unit.YAML()
		if err != nil {
			return
		}
		var whole, bare map[string]map[string]any
		lines := slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return strings.HasPrefix(line, "#") })
		if err := yaml.Unmarshal([]byte(text), &whole); err != nil {
			t.Fatalf("%v\n%q", err, text)
		}
		if err := yaml.Unmarshal([]byte(strings.Join(lines, "\n")), &bare); err != nil {
			t.Fatalf("%v\n%q", err, text)
		}
		if len(whole) != 1 || len(whole["services"]) != 1 || !reflect.DeepEqual(whole, bare) {
			t.Errorf("%q is not %q with comments:\n%q", whole, bare, text)
		}
	})
}
