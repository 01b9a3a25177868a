package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"
)

func TestJournalIsToldHowGraveALineIs(t *testing.T) {
	var said bytes.Buffer
	log := hclog.New(&hclog.LoggerOptions{Output: journal{&said}, DisableTime: true, Level: hclog.Debug})
	log.Error("gone", "why", "one\ntwo")
	log.Warn("late")
	log.Info("fine")
	log.Debug("ticking")
	const want = "<3>[ERROR] gone:\n<3>  why=\n<3>  | one\n<3>  | two\n<3>  \n<4>[WARN]  late\n<6>[INFO]  fine\n<7>[DEBUG] ticking\n"
	if said.String() != want {
		t.Errorf("%q", said.String())
	}
}

func TestJournalIsKnownByItsStream(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "stream"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var is unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &is); err != nil {
		t.Fatal(err)
	}
	for stream, want := range map[string]bool{fmt.Sprintf("%d:%d", is.Dev, is.Ino): true, fmt.Sprintf("%d:%d", is.Dev, is.Ino+1): false, "": false} {
		t.Setenv("JOURNAL_STREAM", stream)
		if toJournal(int(f.Fd())) != want {
			t.Errorf("%q is the stream: %v", stream, !want)
		}
	}
}
