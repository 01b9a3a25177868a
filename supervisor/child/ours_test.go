package child

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"understudy/packaging/need"
	"understudy/supervisor/child/box"
)

// An identity comes from outside. One that names a cgroup which no supervisor made for a tree is no order to kill it.
func TestIdentityOfAnythingElseIsNoOrderToKill(t *testing.T) {
	need.These(t, box.KindCgroup)
	p := newPuppet(t, box.KindCgroup)
	p.do(command{Do: "begin", Epoch: 1})
	p.do(command{Do: "extend", Epoch: 1, In: time.Minute})
	id := p.do(command{Do: "tree", Epoch: 1, Name: "a"}).ID
	p.do(command{Do: "start", Name: "a", Script: stubborn})
	p.ready()
	if dead, err := box.ProveDead(id); dead || err != nil {
		t.Fatalf("before: %v, %v", dead, err)
	}
	for name, change := range map[string]func(*box.TreeID){
		"its parent":         func(id *box.TreeID) { id.Path = filepath.Dir(id.Path) },
		"by another way":     func(id *box.TreeID) { id.Path = filepath.Dir(id.Path) + "/x/../" + filepath.Base(id.Path) },
		"another supervisor": func(id *box.TreeID) { id.Pid++ },
		"another time":       func(id *box.TreeID) { id.StartTime++ },
		"the root":           func(id *box.TreeID) { id.Path = "/" },
	} {
		odd := id
		change(&odd)
		if err := box.KillByID(t.Context(), odd); !errors.Is(err, box.ErrElsewhere) {
			t.Errorf("%s: %v", name, err)
		}
		if dead, err := box.ProveDead(odd); dead || !errors.Is(err, box.ErrElsewhere) {
			t.Errorf("%s: dead %v, %v", name, dead, err)
		}
	}
	p.lives()
}
