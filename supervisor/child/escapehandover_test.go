package child

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"understudy/packaging/need"
	"understudy/supervisor/child/box"
	"understudy/supervisor/testbed/must"
)

// An upgrade goes on beside a program that has left its cgroup and removed it, and nothing else ends for that; it is killed all the
// same when it is to end, by whoever is there then.
func TestAProgramWhoseCgroupIsRemovedIsHandedOver(t *testing.T) {
	outside(t)
	for name, gone := range map[string]func(p *puppet){
		"all of its tree's": func(p *puppet) { p.tidy() },
		"all of the node's": func(p *puppet) {
			p.tidy()
			must.OK(p.t, os.Remove(p.container.Base))
		},
		"its own": func(p *puppet) {
			must.OK(p.t, os.Remove(filepath.Join(p.cgroup, "run-1")))
		},
	} {
		for who, end := range map[string]func(p *puppet){
			"itself":   func(p *puppet) { p.do(command{Do: "kill last", Name: "a"}) },
			"its tree": func(p *puppet) { p.do(command{Do: "end", Name: "a"}) },
			"all":      func(p *puppet) { kill9(p.cmd.Process.Pid) },
			"a new guardian": func(p *puppet) {
				previous := p.guardians()[0]
				kill9(previous)
				awaitDeath(t, previous)
				p.do(command{Do: "move", Epoch: 1, Name: "a"}) // to where it is; answered when both know all
				kill9(p.guardians()[1], p.cmd.Process.Pid)
			},
		} {
			t.Run(name+", ended with "+who, func(t *testing.T) {
				p := newPuppet(t, box.KindCgroup)
				p.raise(time.Minute, "exec "+self(t)+" "+runawayWord)
				gone(p)
				if name != "all of the node's" { // else there is no place for it
					p.do(command{Do: "tree", Epoch: 1, Name: "other"})
					p.do(command{Do: "start", Name: "other", Script: "exec sleep 1000 > /dev/null"})
				}
				for range 2 {
					p.do(command{Do: "become"})
				}
				p.do(command{Do: "extend", Epoch: 1, In: time.Minute})
				p.lives()
				end(p)
				p.dead()
			})
		}
	}
}

// P2: a program of which the next image cannot write down who it is, for those that come later, ends, and nothing else does.
func TestAProgramThatCannotBeNamedEndsInAHandover(t *testing.T) {
	need.These(t, box.KindCgroup)
	p := newPuppet(t, box.KindCgroup)
	p.do(command{Do: "begin", Epoch: 1})
	p.do(command{Do: "extend", Epoch: 1, In: time.Minute})
	run := filepath.Join(p.do(command{Do: "tree", Epoch: 1, Name: "a"}).ID.Path, "run-1")
	p.do(command{Do: "start", Name: "a", Script: "exec sleep 1000 > /dev/null"})
	p.do(command{Do: "tree", Epoch: 1, Name: "other"})
	p.do(command{Do: "start", Name: "other", Script: "echo ready; exec sleep 1000"})
	p.ready()
	err := unix.Removexattr(run, box.FirstAttr)
	for i := 0; err == nil; i++ { // until the kernel takes no more of them
		err = unix.Setxattr(run, "user.x"+itoa(i), nil, 0)
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	p.do(command{Do: "become"})
	if r := p.do(command{Do: "wait", Name: "a"}); r.Pid != 137 {
		t.Errorf("it ended with %d", r.Pid)
	}
	p.do(command{Do: "end", Name: "a"})
	p.lives()
	p.do(command{Do: "extend", Epoch: 1, In: time.Minute})
	p.do(command{Do: "end", Name: "other"})
	p.dead()
}
