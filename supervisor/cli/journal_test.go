package cli

import (
	"bytes"
	"testing"

	"github.com/hashicorp/go-hclog"
)

func TestJournalIsToldHowGraveALineIs(t *testing.T) {
	var said bytes.Buffer
	log := hclog.New(&hclog.LoggerOptions{Output: graded{&said}, DisableTime: true, Level: hclog.Debug})
	log.Error("gone", "why", "one\ntwo")
	log.Warn("late")
	log.Info("fine")
	log.Debug("ticking")
	const want = "<3>[ERROR] gone:\n<3>  why=\n<3>  | one\n<3>  | two\n<3>  \n<4>[WARN]  late\n<6>[INFO]  fine\n<7>[DEBUG] ticking\n"
	if said.String() != want {
		t.Errorf("%q", said.String())
	}
}
