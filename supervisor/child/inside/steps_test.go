package inside

import (
	"reflect"
	"slices"
	"syscall"
	"testing"

	"understudy/supervisor/testbed/must"
)

// A setting without a step would be lost without a trace.
func TestEverySettingHasAStep(t *testing.T) {
	whole := reflect.ValueOf(Settings{
		Credential: &Credential{UID: 1, GID: 2, Name: "daemon"}, Umask: new(uint32(0o27)), Limits: []Limit{{"nofile", 7, 8}}, Nice: new(5), OOMScoreAdj: new(100),
		NoNewPrivs: true, Capabilities: &Capabilities{Bounding: new(uint64(0)), Ambient: 1},
	})
	steps := func(s Settings) (names []string) {
		prog := Program{Path: "/bin/true", Argv: []string{"true"}, Env: []string{}, Settings: s}
		all, err := prog.steps(nil)
		must.OK(t, err)
		for _, step := range all {
			names = append(names, step.what)
		}
		return names
	}
	without := steps(Settings{})
	for i := range whole.NumField() {
		var one Settings
		reflect.ValueOf(&one).Elem().Field(i).Set(whole.Field(i))
		name := whole.Type().Field(i).Name
		if whole.Field(i).IsZero() {
			t.Errorf("%s: this test gives it no value", name)
		}
		if slices.Equal(steps(one), without) {
			t.Errorf("%s: no step applies it", name)
		}
	}
}

func TestLimitsAreKnownToTheKernel(t *testing.T) {
	for name, resource := range limits {
		var limit syscall.Rlimit
		if err := syscall.Getrlimit(resource, &limit); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(limits) != 16 {
		t.Errorf("Linux has 16 limits, not %d", len(limits))
	}
}
