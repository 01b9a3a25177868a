package web

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"understudy/election"
	"understudy/packaging/need"
	"understudy/supervisor/control"
	"understudy/supervisor/testbed/must"
)

func TestAlertsAreSoundAndFireWhenTheyShould(t *testing.T) {
	need.These(t, "prometheus")
	for _, words := range [][]string{
		{"check", "rules", "../../../examples/prometheus-rules.yml"},
		{"test", "rules", "testdata/rules_test.yaml"},
	} {
		if out, err := exec.Command("promtool", words...).CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", words, err, out)
		}
	}
}

// What the dashboard asks is a rule to promtool.
func TestTheDashboardAsksSoundQuestions(t *testing.T) {
	need.These(t, "prometheus")
	text, err := os.ReadFile("../../../examples/grafana-dashboard.json")
	must.OK(t, err)
	var board struct {
		Panels []struct {
			ID      int
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil || len(board.Panels) < 10 {
		t.Fatalf("%d panels, %v", len(board.Panels), err)
	}
	ids := map[int]bool{}
	rules := "groups:\n- name: dashboard\n  rules:\n"
	for _, p := range board.Panels {
		if ids[p.ID] || len(p.Targets) == 0 {
			t.Errorf("panel %d (%s) is there twice, or asks nothing", p.ID, p.Title)
		}
		ids[p.ID] = true
		for i, target := range p.Targets {
			expr := strings.NewReplacer("$__rate_interval", "1m", "$__range", "6h", "$service", ".*").Replace(target.Expr)
			rules += fmt.Sprintf("  - {record: 'panel:%d:%d', expr: %q}\n", p.ID, i, expr)
		}
	}
	file := filepath.Join(t.TempDir(), "rules.yml")
	must.OK(t, os.WriteFile(file, []byte(rules), 0o600))
	if out, err := exec.Command("promtool", "check", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s\n%s", err, out, rules)
	}
}

func TestMetricsAreWellFormed(t *testing.T) {
	need.These(t, "prometheus")
	inBubble(t, func(b *bed) {
		text := b.everyMetric()
		cmd := exec.Command("promtool", "check", "metrics")
		cmd.Stdin = strings.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Errorf("%v\n%s", err, out)
		}
	})
}

// everyMetric makes each one appear.
func (b *bed) everyMetric() string {
	gap := int64(1)
	b.recorded(7, time.Now(), &gap, "switchover")
	for _, role := range []election.Role{"claiming", "active", "stopping", "active"} {
		b.turn(role, "lock won", "grace", 7, role == "active")
	}
	b.board.Fenced("db", "grace", time.Second)
	b.board.Restarted("db")
	b.board.Watchdog("/dev/watchdog", "required", func() bool { return true })
	b.board.Nodes(map[string]bool{"a": true})
	now, position := time.Now(), uint64(1)
	b.board.State(control.LocalStatus{Service: "copied", Role: "standby", Copy: func() control.CopyStatus {
		return control.CopyStatus{Is: control.CopyFollower, Position: &position, Asked: &now, Sees: &election.SeenPrimary{}}
	}})
	time.Sleep(5 * time.Second)
	return b.metrics()
}

var metricName = regexp.MustCompile(`understudy_[a-z_]+`)

func TestDocsExamplesAndMetricsAgree(t *testing.T) {
	inBubble(t, func(b *bed) {
		known := map[string]bool{}
		for _, m := range regexp.MustCompile(`(?m)^# TYPE (understudy_\w+)`).FindAllStringSubmatch(b.everyMetric(), -1) {
			known[m[1]] = true
		}
		if len(known) < 15 {
			b.Errorf("only %v", known)
		}
		used := map[string]map[string]bool{}
		for _, file := range []string{"../../../docs/http.md", "../../../examples/prometheus-rules.yml", "../../../examples/grafana-dashboard.json"} {
			text, err := os.ReadFile(file)
			must.OK(b, err)
			used[file] = map[string]bool{}
			for _, name := range metricName.FindAllString(string(text), -1) {
				if base, ok := strings.CutSuffix(name, "_bucket"); ok {
					name = base
				}
				if base, ok := strings.CutSuffix(name, "_count"); ok {
					name = base
				}
				used[file][name] = true
				if !known[name] {
					b.Errorf("%s: there is no metric %s", file, name)
				}
			}
		}
		for name := range known {
			if !used["../../../docs/http.md"][name] {
				b.Errorf("docs/http.md does not explain %s", name)
			}
		}
	})
}
