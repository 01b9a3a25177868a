package unitfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"understudy/supervisor/config/unitfile"
)

// contains fails for each text that an import has to have, or, after "!", must not have.
func contains(t *testing.T, settings, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		w, not := strings.CutPrefix(w, "!")
		if strings.Contains(text, w) == not {
			t.Errorf("%q: %q is there: %v\n%s", settings, w, not, text)
		}
	}
}

func TestTheRightsOfALineAreKept(t *testing.T) {
	const account = "User=daemon\nGroup=daemon\nWorkingDirectory=/srv\nUMask=077\nNoNewPrivileges=yes\nCapabilityBoundingSet=CAP_SYS_TIME\n"
	for settings, want := range map[string][]string{
		"ExecStart=\nExecStart=!/usr/bin/y":  {"!user:", "!group:", "working_dir: /srv", "umask:", "no_new_privileges", "CAP_SYS_TIME", "# ExecStart= has !, so it starts as root"},
		"ExecStart=\nExecStart=!!/usr/bin/y": {"user: daemon", "group: daemon", "!so it starts as root"}, // only for kernels without ambient capabilities
		"ExecStart=\nExecStart=+/usr/bin/y":  {"!user:", "!group:", "working_dir: /srv", "!no_new_privileges", "!CAP_SYS_TIME", "# ExecStart= has +, so it starts as root"},
		"ExecStart=\nExecStart=-/usr/bin/y":  {"user: daemon", "# not carried over: ExecStart=- (here: only exit code 0 is a success)"},
		"Type=simple":                        {"user: daemon", "!starts as root", "!ExecStart=-"},
	} {
		contains(t, settings, imported(t, account+settings), want...)
	}
	text := imported(t, account+"ExecStartPre=+/usr/bin/before")
	before, _, _ := strings.Cut(text, "- name: x")
	contains(t, "ExecStartPre=+", before, "working_dir: /srv", "umask:", "!user:", "!group:")
}

func TestSignalsThatCheckRefusesAreNotWritten(t *testing.T) {
	for settings, want := range map[string][]string{
		"KillSignal=SIGSTOP":                       {"!    stop_signal: ", "# not carried over: KillSignal=SIGSTOP"},
		"KillSignal=CONT":                          {"!    stop_signal: ", "# not carried over: KillSignal=CONT"},
		"KillSignal=SIGRTMIN+3":                    {"stop_signal: 37"},
		"KillSignal=15":                            {"stop_signal: 15"},
		"ExecStop=/bin/kill -s STOP $MAINPID":      {"!    stop_signal: ", "# not carried over: ExecStop=/bin/kill -s STOP $MAINPID"},
		"ExecStop=/bin/kill -NONSENSE $MAINPID":    {"!    stop_signal: ", "# not carried over: ExecStop="},
		"ExecReload=/bin/kill -KILL $MAINPID":      {"!    reload_signal: ", "# not carried over: ExecReload=/bin/kill -KILL $MAINPID"},
		"ExecReload=/bin/kill -RTMIN+1 $MAINPID":   {"reload_signal: 35"},
		"ExecReload=/bin/kill -USR2 ${MAINPID}":    {"reload_signal: USR2"},
		"ExecStop=/usr/bin/pkill -USR1 $MAINPID":   {"!    stop_signal: ", "# not carried over: ExecStop="},
		"ExecReload=/usr/bin/kill -s HUP $MAINPID": {"!reload_signal", "!not carried over"},
	} {
		contains(t, settings, imported(t, settings), want...)
	}
}

func TestFoldersHaveTheGroupOfTheirUser(t *testing.T) {
	contains(t, "User=", imported(t, "User=daemon\nStateDirectory=x"), `[sh, -c, exec install -d -m 0755 -o daemon -g "$(id -g daemon)" /var/lib/x]`)
	contains(t, "Group=", imported(t, "User=daemon\nGroup=adm\nStateDirectory=x"), "[install, -d, -m, \"0755\", -o, daemon, -g, adm, /var/lib/x]")
}

func TestWhatOnlySystemdGivesIsToDo(t *testing.T) {
	for settings, want := range map[string][]string{
		"ExecStart=\nExecStart=/usr/bin/dockerd -H fd://": {"# TO DO: fd:// in its command"},
		"Sockets=y.socket":                                         {"# TO DO: systemd opens y.socket for it"},
		"[Install]\nAlso=z.socket w.service":                       {"# TO DO: systemd opens z.socket for it", "!w.service for it"},
		"[Unit]\nRequires=x.socket y.socket":                       {"# TO DO: systemd opens x.socket for it", "!y.socket for it"},
		"EnvironmentFile=-/nowhere/x":                              {"!env_file: ", "# not carried over: EnvironmentFile=-/nowhere/x (here: env_file has to exist"},
		"EnvironmentFile=-/nowhere/x\nEnvironmentFile=/etc/passwd": {"env_file: /etc/passwd", "!a service has one"},
		"EnvironmentFile=/nowhere/x":                               {"env_file: /nowhere/x", "# TO DO: /nowhere/x (EnvironmentFile=) is not on this host, and without it the program does not start"},
		"DynamicUser=yes":                                          {"# TO DO: DynamicUser=yes"},
	} {
		contains(t, settings, imported(t, settings), want...)
	}
}

func TestOtherUnitsOfATemplateAreToldOf(t *testing.T) {
	root := t.TempDir()
	units := filepath.Join(root, "etc/systemd/system")
	wants := filepath.Join(units, "multi-user.target.wants")
	for _, err := range []error{
		os.MkdirAll(wants, 0o755),
		os.WriteFile(filepath.Join(units, "x@.service"), []byte("[Service]\nExecStart=/usr/bin/x %i\n"), 0o644),
		os.WriteFile(filepath.Join(units, "x.socket"), nil, 0o644),
		os.WriteFile(filepath.Join(units, "x.service"), []byte("[Service]\nExecStart=/usr/bin/x\n"), 0o644),
		os.Symlink("../x@.service", filepath.Join(wants, "x@a.service")),
		os.Symlink("../x@.service", filepath.Join(wants, "x@b.service")),
		os.Symlink("../x.socket", filepath.Join(wants, "x.socket")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := unitfile.Load(root, "x@"); err == nil || !strings.Contains(err.Error(), "x@.service is a template: name one of its units, as x@NAME") {
		t.Error(err)
	}
	for name, want := range map[string]string{"x": "# TO DO: systemd opens x.socket for it"} {
		unit, err := unitfile.Load(root, name)
		if err != nil {
			t.Fatal(err)
		}
		text, err := unit.YAML()
		if err != nil {
			t.Fatal(err)
		}
		contains(t, name, text, want)
	}
}

func TestAReloadKeepsItsTest(t *testing.T) {
	for settings, want := range map[string][]string{
		"ExecReload=/usr/bin/x -t\nExecReload=/bin/kill -HUP $MAINPID": {"reload_check: [/usr/bin/x, -t]", "!not carried over"},
		"ExecReload=/usr/bin/x -t\nExecReload=/usr/bin/y\nExecReload=kill -HUP $MAINPID": {"reload_check: [/usr/bin/x, -t]",
			"# TO DO: ExecReload=/usr/bin/y"},
		"ExecReload=/bin/kill -HUP $MAINPID\nExecReload=/usr/bin/y": {"!reload_check", "# not carried over: ExecReload=/usr/bin/y"},
		"":                              {"# The unit has no ExecReload=", "!reload_"},
		"ExecReload=kill -HUP $MAINPID": {"!The unit has no ExecReload="},
		"ExecReload=/usr/bin/x reload":  {"!reload_check", "# not carried over: ExecReload=/usr/bin/x reload"},
		"ExecReload=-/usr/bin/x -t\nExecReload=/bin/kill -HUP $MAINPID": {"!reload_check"}, // its failure does not matter
	} {
		contains(t, settings, imported(t, settings), want...)
	}
}

// A program that is imported has the open files that its unit gave it without a Limit: systemd's default, of which select(2) needs the soft one.
func TestProgramsMayHaveAsManyOpenFilesAsUnderSystemd(t *testing.T) {
	for _, name := range []string{"understudy.service", "understudy@.service"} {
		text, err := os.ReadFile("../../../packaging/systemd/" + name)
		if err != nil {
			t.Fatal(err)
		}
		contains(t, name, string(text), "\nLimitNOFILE=1024:524288\n")
	}
}
