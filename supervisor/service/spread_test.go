package service

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestServicesWithOneWordAreKeptApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSpread()
		see := func(what, service, word string, want bool) {
			t.Helper()
			if got := s.crowded(service, word); got != want {
				t.Errorf("%s: crowded: %v", what, got)
			}
		}
		see("nothing is here", "a", "jvm", false)
		see("its lock and this one's are free at once", "b", "jvm", true)
		see("it itself is no other", "a", "jvm", false)
		see("another word", "c", "cache", false)
		time.Sleep(claiming)
		see("a did not come to be here", "b", "jvm", false)
		s.engage("b", "jvm")
		time.Sleep(time.Hour)
		see("b is here", "a", "jvm", true)
		see("b looks again", "b", "jvm", false)
		see("a is still told", "a", "jvm", true)
		s.disengage("b")
		see("b has gone", "a", "jvm", false)
		s.engage("d", "")
		see("no word is no common one", "e", "", false)
	})
}
