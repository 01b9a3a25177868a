package cli

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/supervisor/child/notify"
	"understudy/supervisor/testbed/must"
)

// A program that is about to end waits until it was heard: otherwise its end is seen first, and nobody knows why.
func TestLastWordsAreHeardBeforeTheEnd(t *testing.T) {
	s, err := notify.Listen(notify.Config{UID: uint32(os.Geteuid()), Logger: hclog.NewNullLogger()})
	must.OK(t, err)
	name, path, _ := strings.Cut(s.Env(), "=")
	t.Setenv(name, path)
	began := time.Now()
	if err := sayLast(notify.Why+"=it is gone", heardWithin); err != nil || time.Since(began) < heardWithin {
		t.Errorf("nobody has heard it, and it does not wait: %v", err)
	}
	const late = heardWithin / 4
	done := make(chan struct{})
	go func() { defer close(done); time.Sleep(late); _ = s.Run(t.Context()) }()
	began = time.Now()
	err = sayLast(notify.Why+"=no disk", time.Hour)
	if took := time.Since(began); err != nil || s.Why() != "no disk" || took < late || took >= time.Minute {
		t.Errorf("%q is heard after %v: %v", s.Why(), took, err)
	}
	must.Report(t, s.Close())
	<-done
}
