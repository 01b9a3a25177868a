package unitfile

import "slices"

// Settings that need no place in a config, whatever their value: those of any section, those of [Unit], which order units, and those of
// [Service] that steer systemd alone.
var (
	descriptive = []string{"Description", "Documentation", "SourcePath", "DefaultDependencies"}
	order       = []string{"After", "Before", "Wants"}
	silent      = []string{"Type", "PIDFile", "NotifyAccess", "SyslogIdentifier", "GuessMainPID"}
)

// asHere are settings of [Service] with the values that ask for what Understudy does anyway.
var asHere = map[string][]string{
	"KillMode":        {"control-group", "mixed"},
	"SendSIGKILL":     {"yes", "true", "on", "1"},
	"FinalKillSignal": {"SIGKILL", "KILL", "9"},
	"RemainAfterExit": {"no", "false", "off", "0"},
	"OOMPolicy":       {"continue"},
	"WatchdogSec":     {"0", "infinity"},
	"TimeoutStartSec": {"0", "infinity"},
	"StandardOutput":  {"inherit", "journal", "syslog"},
	"StandardError":   {"inherit", "journal", "syslog"},
}

// differs is what Understudy does in place of a setting.
var differs = map[string]string{
	"KillMode":              "a stop kills all processes of the program",
	"SendSIGKILL":           "SIGKILL follows when stop_timeout ends",
	"FinalKillSignal":       "it is SIGKILL",
	"RemainAfterExit":       "a program that ended is not active",
	"OOMPolicy":             "the other processes keep running",
	"WatchdogSec":           "health: checks a program",
	"TimeoutStartSec":       "ready: has a timeout",
	"StandardOutput":        "log: {file: FILE} takes both outputs",
	"StandardError":         "log: {file: FILE} takes both outputs",
	"SuccessExitStatus":     "only exit code 0 is a success",
	"StartLimitBurst":       "restart.give_up_after",
	"StartLimitInterval":    "restart.within",
	"StartLimitIntervalSec": "restart.within",
}

func (t *translation) lose(setting, here string) {
	if here != "" {
		setting += " (here: " + here + ")"
	}
	t.lost = append(t.lost, setting)
}

// leftOut lists what nothing above looked at.
func (t *translation) leftOut() {
	for i, s := range t.settings {
		same, single := asHere[s.key]
		replaced := single && slices.ContainsFunc(t.settings[i+1:], func(later setting) bool {
			return later.section == s.section && later.key == s.key
		})
		known := s.section == "Install" || s.value == "" || slices.Contains(descriptive, s.key) ||
			s.section == "Unit" && slices.Contains(order, s.key) ||
			s.section == "Service" && (slices.Contains(silent, s.key) || replaced || slices.Contains(same, s.value) || t.used[s.key])
		if !known {
			t.lose(s.key+"="+t.expand(s.value), differs[s.key])
		}
	}
}
