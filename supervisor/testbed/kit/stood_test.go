package kit

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"
)

// What is taken out of a measurement is a pause that there was, and no more: not parallel, as this process is stopped.
func TestStoodTellsOfPausesAlone(t *testing.T) {
	began := time.Now()
	stood := Stood(t)
	Throughout(t, 100*time.Millisecond, "it runs", func() bool { return true })
	between := time.Now()
	if still, all := stood(), time.Since(began); still >= all {
		t.Errorf("it stood still for %v of %v", still, all)
	}
	const pause = 300 * time.Millisecond
	script := fmt.Sprintf("kill -STOP %d; sleep %v; kill -CONT %[1]d", os.Getpid(), pause.Seconds())
	if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if still, all := stood(), time.Since(between); still < pause*9/10 || still > all {
		t.Errorf("it stood still for %v of %v, and was stopped for %v", still, all, pause)
	}
}
