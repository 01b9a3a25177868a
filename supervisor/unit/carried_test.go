package unit

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"understudy/supervisor/config"
	"understudy/supervisor/safefile"
	"understudy/supervisor/testbed/must"
	"understudy/supervisor/wait"
)

// A pipe into a log file is handed over: no line is lost or written twice, and the previous image has stopped writing.
func TestAPipeIsHandedOnWithoutALoss(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	previous := new(logs)
	var reach wait.Reach
	log := hclog.NewNullLogger()
	file, err := previous.open(t.Context(), &reach, config.LogFile{File: path}, safefile.Who{}, log)
	must.OK(t, err)
	var want strings.Builder
	say := func(to *os.File, from int) {
		for n := range 2000 {
			line := fmt.Sprintln("line", from+n)
			want.WriteString(line)
			if _, err := to.WriteString(line); err != nil {
				t.Fatal(err)
			}
		}
	}
	say(file.Writer(), 0)
	for turn := range 3 {
		pipes, err := previous.part()
		if err != nil || len(pipes) != 1 {
			t.Fatalf("%d pipes, %v", len(pipes), err)
		}
		say(pipes[0].w, 2000*(turn+1)) // nobody reads it
		next := new(logs)
		must.OK(t, next.resume(t.Context(), &reach, pipes[0], log))
		previous = next
	}
	must.OK(t, previous.close())
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want.String() {
		t.Errorf("%d bytes are written, %v, instead of %d", len(got), err, want.Len())
	}
}
