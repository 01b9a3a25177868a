package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"understudy/supervisor"
	"understudy/supervisor/testbed/must"
)

// A file that was cut off while it was written, as on a full disk, is no order to stop what it had. That is `systemctl reload`, or a file that
// says that it has none.
func TestAnEmptiedFileStopsNothing(t *testing.T) {
	const gone = "(gone)"
	const top = "zookeeper: {servers: [zk]}\n"
	here := map[string]string{
		"u.yaml":           top + "include: [conf.d/*.yaml]\nservices: {a: {command: [true]}}\n",
		"conf.d/b.yaml":    "services: {b: {command: [true]}, c: {command: [true]}}\n",
		"conf.d/none.yaml": "services: {}\n",
	}
	const lost = "conf.d/b.yaml gives no services any more (b, c)"
	one := func(name, text string) map[string]string { return map[string]string{name: text} }
	for name, c := range map[string]struct {
		write map[string]string
		why   string // the reason in status; empty: it is loaded
		asked string // the services once a reload is ordered; empty: it is refused all the same
	}{
		"0 bytes":    {one("conf.d/b.yaml", ""), lost, "a"},
		"a comment":  {one("conf.d/b.yaml", "# b\n"), lost, "a"},
		"a bare key": {one("conf.d/b.yaml", "services:\n"), lost, "a"},
		"gone":       {one("conf.d/b.yaml", gone), lost, "a"},
		"one is elsewhere": {map[string]string{"conf.d/b.yaml": gone, "conf.d/d.yaml": "services: {c: {command: [true]}}\n"},
			"conf.d/b.yaml gives no services any more (b)", "a c"},
		"all are elsewhere":   {map[string]string{"conf.d/b.yaml": gone, "conf.d/d.yaml": "# b\n" + here["conf.d/b.yaml"]}, "", "a b c"},
		"none, and says so":   {one("conf.d/b.yaml", "services: {}\n"), "", "a"},
		"one less":            {one("conf.d/b.yaml", "services: {b: {command: [true]}}\n"), "", "a b"},
		"the main file's":     {one("u.yaml", top+"include: [conf.d/*.yaml]\nservices:\n"), "u.yaml gives no services any more (a)", "b c"},
		"the main file's end": {one("u.yaml", top+"services: {a: {command: [true]}}\n"), lost, "a"},
		"the main file":       {one("u.yaml", ""), "is empty", ""},
		"all of them":         {one("u.yaml", top+"services:\n"), "has no services any more", ""},
		"what had none":       {one("conf.d/none.yaml", ""), "", "a b c"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			put := func(files map[string]string) {
				for name, text := range files {
					at := filepath.Join(dir, name)
					err := os.MkdirAll(filepath.Dir(at), 0o700)
					if err == nil && text == gone {
						err = os.Remove(at)
					} else if err == nil {
						err = os.WriteFile(at, []byte(text), 0o600)
					}
					must.OK(t, err)
				}
			}
			put(here)
			var flags runFlags
			cmd := &cobra.Command{}
			flags.register(cmd)
			flags.cluster.Config = filepath.Join(dir, "u.yaml")
			l, err := flags.file(cmd)
			must.OK(t, err)
			changes := make(chan supervisor.Change, 1)
			f := &follower{flags: &flags, cmd: cmd, log: hclog.NewNullLogger(), changes: changes, first: l.Config, last: l.Config}
			f.sum, f.files = l.sum, l.files
			reload := func(asked bool) (names, fault string) {
				f.reload(context.Background(), nil, nil, asked)
				var change supervisor.Change
				select {
				case change = <-changes:
				default: // as before
					return "", f.fault
				}
				for _, v := range change.Services {
					names += " " + v.Name
				}
				return strings.TrimSpace(names), change.Fault
			}
			put(c.write)
			names, fault := reload(false)
			switch {
			case c.why == "" && (fault != "" || names != c.asked):
				t.Errorf("it is not loaded: %q, %q", names, fault)
			case c.why != "" && (!strings.Contains(fault, c.why) || names != ""):
				t.Errorf("it is loaded: %q, %q", names, fault)
			case (f.held() != nil) != (c.why != ""):
				t.Errorf("an upgrade, whose next image would load it: %v", f.held())
			}
			put(map[string]string{"conf.d/e.yaml": "services: {e: {command: [true]}}\n"}) // another change is no order either
			if names, fault = reload(false); c.why != "" && (fault == "" || names != "") && c.why != "has no services any more" {
				t.Errorf("it is loaded with the next change: %q, %q", names, fault)
			}
			put(map[string]string{"conf.d/e.yaml": gone})
			if names, fault = reload(true); names != c.asked || (fault == "") != (c.asked != "") {
				t.Errorf("it is ordered: %q, %q", names, fault)
			}
		})
	}
}
