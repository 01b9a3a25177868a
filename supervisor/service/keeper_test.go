package service

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// slowMemory takes a while to save.
type slowMemory struct {
	takes time.Duration
	saved *atomic.Int64 // a token
}

func (slowMemory) Load(string) Known { return Known{} }

func (m slowMemory) Save(_ string, k Known) {
	time.Sleep(m.takes)
	m.saved.Store(k.Token)
}

// P1: the next supervisor of this node knows the claim that this one saw just before it ended. A file system that hangs does not keep it.
func TestWhatWasSeenLastIsSavedBeforeTheEnd(t *testing.T) {
	for _, c := range []struct {
		takes time.Duration
		want  int64
	}{{time.Second, 8}, {time.Hour, 0}} {
		synctest.Test(t, func(t *testing.T) {
			var saved atomic.Int64
			v := made(t, Conf{Name: "db"}, func(n *LocalNode) { n.Memory = slowMemory{c.takes, &saved} })
			v.mem.saw(7, 7)
			v.mem.saw(8, 8)
			began := time.Now()
			v.Close()
			if saved.Load() != c.want || time.Since(began) > keepPatience {
				t.Errorf("a save takes %v: token %d is saved, after %v", c.takes, saved.Load(), time.Since(began))
			}
			time.Sleep(2 * time.Hour) // the goroutine ends
		})
	}
}
