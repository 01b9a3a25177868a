package service

import (
	"testing"

	"understudy/election"
)

// P1: the record of an active node may be gone with what is lost, while its program runs.
func TestWhatIsOlderThanWhatWasSeenIsLostData(t *testing.T) {
	type look struct {
		birth                  election.Birth
		newest, zxid, setBacks int64
	}
	ours := election.Birth{Czxid: 2, Ctime: 3}
	for _, c := range []struct {
		what string
		now  look
		lost bool
	}{
		{"as it was", look{ours, 40, 50, 1}, false},
		{"newer", look{ours, 60, 70, 1}, false},
		{"another folder", look{election.Birth{Czxid: 2, Ctime: 4}, 60, 70, 1}, true},
		{"an older claim", look{ours, 39, 70, 1}, true},
		{"an older change", look{ours, 40, 49, 1}, true},
		{"set back, and newer by now", look{ours, 60, 70, 2}, true},
	} {
		m := memory{}
		m.remember(Known{Birth: ours, Zxid: 50, Token: 40})
		m.setBacks = 1
		if lost := m.lost(c.now.birth, c.now.newest, c.now.zxid, c.now.setBacks); lost != c.lost {
			t.Errorf("%s: lost %v", c.what, lost)
		}
	}
	if m := (memory{}); m.lost(ours, 40, 50, 7) || m.setBacks != 7 {
		t.Error("a node that has seen nothing takes what it sees for lost data")
	}
}
