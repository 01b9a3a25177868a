package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"understudy/supervisor/ocf"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// A resource agent starts before the program, is watched, and is stopped after it: with the service, and with what it handles.
func TestAResourceAgentIsAMemberOfAService(t *testing.T) {
	p, d := newPlay(t, stage(t)), newDiary(t)
	root := t.TempDir()
	t.Setenv("OCF_ROOT", root)
	dir := filepath.Join(root, "resource.d", "test")
	must.OK(t, os.MkdirAll(dir, 0o755))
	must.OK(t, os.WriteFile(filepath.Join(dir, "Agent"), fmt.Appendf(nil, `#!/bin/sh
case $1 in
start) echo "+$OCF_RESOURCE_INSTANCE=$OCF_RESKEY_device" >>%[1]s; touch %[2]s/there;;
stop) echo "-$OCF_RESOURCE_INSTANCE" >>%[1]s; rm -f %[2]s/there;;
monitor) [ -e %[2]s/there ] || exit 7;;
meta-data) echo '<resource-agent><actions><action name="monitor" timeout="20s" interval="50ms"/></actions></resource-agent>';;
esac
`, d, root), 0o755))
	a, b := p.Lab.Machine(t, "a"), kit.Install(t)
	s := a.UnderstudyAt(t, string(b), "run", "--config",
		p.Config(t, a, "", "restart: {delay: 100ms}", "processes:", "  - {name: fs, ocf: 'test:Agent', params: {device: vdb}}", d.ordinary("web")))
	p.Started = append(p.Started, s)
	name := ocf.Instance(p.Options.Service, "fs")
	start := fmt.Sprintf("+%s=vdb +web", name)
	once := fmt.Sprintf("%s -web -%s", start, name)
	d.until(t, start)
	b.Upgraded(t, s) // which starts nothing again
	must.OK(t, os.Remove(filepath.Join(root, "there")))
	d.until(t, once+" "+start)
	s.Stop(t)
	d.until(t, once+" "+once)
}
