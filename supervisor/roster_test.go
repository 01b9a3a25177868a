package supervisor

import (
	"testing"

	"understudy/supervisor/service"
)

// Two services of one name would take each other's lock for their own: both have the same session.
func TestAServiceWaitsForItsNamesakeThatWasRemoved(t *testing.T) {
	s := small(Config{})
	make := func(name string) *service.Service { return s.service(Service{Name: name}) }
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
