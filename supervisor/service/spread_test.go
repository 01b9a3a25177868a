package service

import "testing"

func TestServicesWithOneWordAreKeptApart(t *testing.T) {
	s := NewSpread()
	see := func(what, service, word string, want bool) {
		t.Helper()
		if got := s.crowded(service, word); got != want {
			t.Errorf("%s: crowded: %v", what, got)
		}
	}
	see("nothing is here", "a", "jvm", false)
	s.engage("b", "jvm")
	see("b is here", "a", "jvm", true)
	see("it itself is no other", "b", "jvm", false)
	see("another word", "c", "cache", false)
	s.disengage("b")
	see("b has gone", "a", "jvm", false)
	s.engage("d", "")
	see("no word is no common one", "e", "", false)
}
