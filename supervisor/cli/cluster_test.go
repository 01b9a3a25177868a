package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"understudy/supervisor/control"
)

// Typed as it stands, a command that a refusal advises must not go to another cluster. Other commands, and words, stay as they are.
func TestAnAdvisedCommandSpeaksOfTheSameCluster(t *testing.T) {
	v := visit{clusterFlags: clusterFlags{Root: "/a b"}}
	err := v.explain(fmt.Errorf("%w: db is stopped: `understudy start db` first, see `understudy check`", control.ErrRefused))
	const want = "`understudy start db --root '/a b'` first, see `understudy check`"
	if err == nil || !errors.Is(err, control.ErrRefused) || err.Error() != control.ErrRefused.Error()+": db is stopped: "+want {
		t.Errorf("%v", err)
	}
	plain := fmt.Errorf("%w: `understudy start db` first", control.ErrRefused)
	if got := (&visit{}).explain(plain); got.Error() != plain.Error() {
		t.Errorf("%v", got)
	}
	if v.explain(nil) != nil {
		t.Error("no error became one")
	}
}

func TestAWrongListInTheEnvironmentIsBlamedOnTheVariable(t *testing.T) {
	for line, want := range map[string]string{"status": "UNDERSTUDY_ZK: ", "status --zk http://b": "--zk: ", "run -- sleep 1": "UNDERSTUDY_ZK: "} {
		t.Setenv("UNDERSTUDY_ZK", "http://a")
		if code, _, text := says(t, strings.Fields(line)...); code != 2 || !strings.Contains(text, "understudy: "+want) {
			t.Errorf("%s: %d %s", line, code, text)
		}
	}
}
