package supervisor

import (
	"testing"

	"understudy/election"
	"understudy/supervisor/config"
	"understudy/supervisor/handoff"
	"understudy/supervisor/service"
)

// Two services of one name would take each other's lock for their own: both have the same session.
func TestAServiceWaitsForItsNamesakeThatWasRemoved(t *testing.T) {
	s := small(Config{})
	make := func(name string) *service.Service { return s.service(service.Conf{Name: name}) }
	first, second, third, other := make("db"), make("db"), make("db"), make("web")
	first.Remove()
	second.Remove()
	s.roster.services = []*service.Service{other, first, second, third}
	for v, waits := range map[*service.Service]bool{other: false, first: false, second: true, third: true} {
		if s.roster.waits(v) != waits {
			t.Errorf("%s waits: %v, want %v", v.Name(), !waits, waits)
		}
	}
}

// What another image of this process has started is no copy, if the config makes the service a replicated one since: it ends first.
func TestARunningServiceThatIsToBeReplicatedEndsFirst(t *testing.T) {
	for _, replicated := range []*config.Replicated{nil, {}} {
		s := small(Config{})
		v := s.roster.add(service.Conf{Name: "db", Service: config.Service{Replicated: replicated}})
		s.roster.add(service.Conf{Name: "web"})
		s.roster.reinstate(&handoff.Envelope{Services: []service.CarriedService{{Name: "db", Term: &service.CarriedTerm{}}}})
		first := s.roster.services[0]
		if previous := replicated != nil; previous != (first != v) || previous != first.Removed() || previous != s.roster.waits(v) || !first.Carries() || previous == v.Carries() {
			t.Errorf("replicated: %v: the first is another one: %v, removed: %v, carries: %v; it waits: %v", previous, first != v, first.Removed(), first.Carries(), s.roster.waits(v))
		}
	}
}

// P6: what another image of this process had in the queue is deleted, although the service is not in the config any more.
func TestWhatAPreviousImageHadInTheQueueIsNotForgotten(t *testing.T) {
	for _, session := range []int64{0, 1} {
		s := small(Config{})
		s.roster.births = map[string]election.Birth{}
		s.roster.reinstate(&handoff.Envelope{Services: []service.CarriedService{{Name: "db", Place: election.CarriedCandidate{Session: session}}}})
		if kept := len(s.roster.services) == 1 && s.roster.services[0].Removed(); kept != (session != 0) {
			t.Errorf("session %d: kept: %v", session, kept)
		}
	}
}
