package supervisor

import (
	"testing"

	"understudy/election"
	"understudy/supervisor/config"
	"understudy/supervisor/handoff"
	"understudy/supervisor/replica"
	"understudy/supervisor/service"
	"understudy/supervisor/unit"
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

// What another image of this process has started in another way than the config has it now, as a copy or not, ends first.
func TestARunningServiceThatIsToRunInAnotherWayEndsFirst(t *testing.T) {
	programs := &unit.CarriedRun{Programs: []config.Process{{Name: "main"}}}
	plain := config.Service{}
	replicated, warm := plain, plain
	replicated.Replicated = &config.Replicated{}
	warm.Replicated, warm.Warm = &config.Replicated{}, &config.Warm{}
	ran := map[string]func() service.CarriedService{
		"plain": func() service.CarriedService {
			return service.CarriedService{Term: &service.CarriedTerm{Run: programs}}
		},
		"replicated": func() service.CarriedService { return service.CarriedService{Copy: &replica.Carried{Run: programs}} },
		"warm": func() service.CarriedService {
			return service.CarriedService{Term: &service.CarriedTerm{Run: programs}, Copy: &replica.Carried{Warm: true}}
		},
	}
	for is, conf := range map[string]config.Service{"plain": plain, "replicated": replicated, "warm": warm} {
		for was, carried := range ran {
			s := small(Config{})
			s.commands = treeless{}.commands()
			v := s.roster.add(service.Conf{Name: "db", Service: conf})
			s.roster.add(service.Conf{Name: "web"})
			r := carried()
			r.Name = "db"
			s.roster.reinstate(&handoff.Envelope{Services: []service.CarriedService{r}})
			first, previous := s.roster.services[0], was != is
			if previous != (first != v) || previous != first.Removed() || previous != s.roster.waits(v) || first.Carries() != (r.Term != nil) || previous && v.Carries() {
				t.Errorf("%s, was %s: the first is another one: %v, removed: %v, carries: %v; it waits: %v",
					is, was, first != v, first.Removed(), first.Carries(), s.roster.waits(v))
			}
			if given := first.Given(); previous && ((given.Warm != nil) != (was == "warm") || (given.Replicated != nil) != (was != "plain")) {
				t.Errorf("%s ends as %+v", was, given)
			}
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

// A service of the same name would not notice that data was lost, if it did not know which folder to expect.
func TestARemovedServiceLeavesItsFolderToItsNamesake(t *testing.T) {
	s := small(Config{})
	s.roster.births = map[string]election.Birth{}
	v, birth := s.service(service.Conf{Name: "db"}), election.Birth{Czxid: 7}
	v.SetBirth(birth)
	v.Remove()
	s.roster.services = []*service.Service{v}
	if !s.roster.forget(v, nil) || s.roster.births["db"] != birth {
		t.Errorf("%+v", s.roster.births)
	}
}
