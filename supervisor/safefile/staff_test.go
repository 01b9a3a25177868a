package safefile

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Debian's group staff may write in /usr/local where it says that this is meant so, and nowhere else.
func TestDebiansStaffMayWriteInItsPlaceAlone(t *testing.T) {
	former := staffMark
	t.Cleanup(func() { staffMark = former })
	staffMark = filepath.Join(t.TempDir(), "mark")
	st := &unix.Stat_t{Mode: unix.S_IFDIR | 0o2775, Gid: staff}
	judge := func(marked bool) {
		t.Helper()
		for here, fine := range map[string]bool{"/usr/local": marked, "/usr/local/bin": marked, "/usr/localized": false, "/etc/understudy": false} {
			if c := look(here, st, true); (c.Why == "") != fine {
				t.Errorf("%s: %+v", here, c)
			}
		}
	}
	judge(false)
	if err := os.WriteFile(staffMark, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	judge(true)
}
