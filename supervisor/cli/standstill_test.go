package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/supervisor/service/role"
)

// A supervisor of which a service stands still says where, and ends, even if it cannot say it.
func TestAStandstillIsToldWithItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		log := hclog.New(&hclog.LoggerOptions{Output: &text})
		standsStill(log, func() {}, "web", 6*time.Second, func() string { return "goroutine 7 [syscall]:\nread" })
		for _, want := range []string{"please report", "service=web", "for=6s", "goroutine 7 [syscall]", "read"} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("no %q in %s", want, text.String())
			}
		}
		began, never := time.Now(), make(chan struct{})
		standsStill(log, func() {}, "web", 6*time.Second, func() string { <-never; return "" })
		if took := time.Since(began); took != 2*lastWords {
			t.Errorf("the end waits for %v", took)
		}
		close(never)
	})
}

type standing struct{ role.Actions }

func (standing) Moved(role.State, role.State, role.Event, error) {}

func (s standing) EndOld(context.Context) role.Event { panic(deciders()) }

// What decides comes first, however much else this process does.
func TestTheStacksOfThoseWhoDecideComeFirst(t *testing.T) {
	defer func() {
		first, _, _ := strings.Cut(recover().(string), "\n\n")
		if !strings.Contains(first, "standing.EndOld") {
			t.Errorf("first is %s", first)
		}
	}()
	role.Drive(t.Context(), role.State{}, standing{})
}
