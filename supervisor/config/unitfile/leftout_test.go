package unitfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"understudy/supervisor/config"
	"understudy/supervisor/config/unitfile"
)

// imported is what becomes of a unit with these settings.
func imported(t *testing.T, settings string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "x.service")
	if err := os.WriteFile(file, []byte("[Service]\nExecStart=/usr/bin/x\n"+settings+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	unit, err := unitfile.Load("", file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := unit.YAML()
	if err != nil {
		t.Fatal(err)
	}
	whole := filepath.Join(t.TempDir(), "u.yaml")
	if err := os.WriteFile(whole, []byte("zookeeper: {servers: [\"zk1:2181\"]}\n"+text), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := config.Read(whole, ""); r.Err() != nil {
		t.Errorf("%s: check refuses it: %v", settings, r.Err())
	}
	return text
}

func TestWhatIsNotCarriedOverIsAComment(t *testing.T) {
	for _, setting := range []string{
		"KillMode=process", "KillMode=none", "Restart=on-abnormal", "Restart=on-abort", "Restart=on-watchdog", "Restart=on-success", "WatchdogSec=30s",
		"SuccessExitStatus=143", "SendSIGKILL=no", "FinalKillSignal=SIGQUIT", "StandardOutput=file:/var/log/x", "StandardError=append:/var/log/x",
		"StandardOutput=null", "OOMPolicy=kill", "RemainAfterExit=yes", "StartLimitBurst=5", "StartLimitInterval=10s", "Slice=x.slice",
		"TimeoutStartSec=5s", "RestartSec=soon", "MemoryMax=50%", "CPUQuota=12.5%", "TasksMax=10%", "LimitCPU=9\nCPUQuota=50%",
		"NeverHeardOf=1",
	} {
		if text := imported(t, setting); !strings.Contains(text, "# not carried over: "+setting[strings.LastIndex(setting, "\n")+1:]) {
			t.Errorf("%s: no comment\n%s", setting, text)
		}
	}
	for _, setting := range []string{
		"KillMode=control-group", "KillMode=mixed", "SendSIGKILL=yes", "FinalKillSignal=SIGKILL", "StandardOutput=journal", "StandardError=inherit",
		"OOMPolicy=continue", "RemainAfterExit=no", "Restart=on-failure", "Restart=always", "PIDFile=/run/x.pid", "Type=simple", "WatchdogSec=0",
		"RestartSec=0", "KillMode=", "MemoryMax=infinity", "TasksMax=infinity", "CPUQuota=",
	} {
		if text := imported(t, setting); strings.Contains(text, "not carried over") {
			t.Errorf("%s: a comment\n%s", setting, text)
		}
	}
	if text := imported(t, "[Unit]\nStartLimitIntervalSec=0\nAfter=network.target"); strings.Count(text, "not carried over") != 1 {
		t.Errorf("a unit's limit of starts: %s", text)
	}
}

func TestTheLimitsOfAUnitsCgroupAreCarriedOver(t *testing.T) {
	text := imported(t, "LimitNOFILE=99\nMemoryMax=1G\nMemoryMax=512M\nCPUQuota=150%\nTasksMax=500")
	for _, want := range []string{"nofile: 99\n", "memory: 512MiB\n", "cpu: 150%\n", "tasks: 500\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q\n%s", want, text)
		}
	}
	if text := imported(t, "MemoryMax=8192\nMemoryMax=infinity"); strings.Contains(text, "memory") {
		t.Errorf("a limit that was taken back\n%s", text)
	}
}

func TestRestartAsSystemdDoesOrAComment(t *testing.T) {
	const missing = "# The unit has no Restart="
	for settings, want := range map[string]string{
		"Restart=no": "policy: never", "Restart=always": "policy: always", "Restart=always\nRestart=no": "policy: never", "RestartSec=0": "delay: 0s",
		"Restart=on-failure\nRestartSec=30": "within: 2m30s", // with the default, check refuses it
		"":                                  missing, "Restart=": missing, "Type=notify\nTimeoutStartSec=5s": "timeout: 5s", "Type=notify\nTimeoutSec=7s": "timeout: 7s", "Type=notify-reload": "notify: true",
		"Type=notify\nTimeoutStartSec=infinity": "timeout: 24h0m0s",
	} {
		if text := imported(t, settings); !strings.Contains(text, want) {
			t.Errorf("%q: no %q\n%s", settings, want, text)
		}
	}
	if text := imported(t, "Restart=on-failure"); strings.Contains(text, missing) {
		t.Error(text)
	}
}

// What differs between hosts, or only systemd knows, stays as it is.
func TestSpecifiersOfOneHostStay(t *testing.T) {
	text := imported(t, "Environment=NAME=%H ID=%m BOTH=%%b UNIT=%n")
	for _, want := range []string{`NAME: "%H"`, `ID: "%m"`, `BOTH: "%b"`, "UNIT: "} {
		if !strings.Contains(text, want) || strings.Contains(text, "%n") {
			t.Errorf("no %q\n%s", want, text)
		}
	}
}
