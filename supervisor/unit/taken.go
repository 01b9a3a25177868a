package unit

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"understudy/supervisor/child/probe"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/config"
)

// Taken is why a service that does not run here could not be ready if it was started now: a program of another systemd unit listens where
// one of its own is to answer. nil: that is not known. A copy of a replicated service runs here anyway.
func Taken(s config.Service) error {
	if s.Replicated != nil {
		return nil
	}
	return taken(s, wire.Now(), probe.Squatter)
}

func taken(s config.Service, since time.Duration, who func(address string, since time.Duration, ours []netip.Addr) string) error {
	var ours []netip.Addr // which need not be set here yet
	answers := []string{s.Health.TCP}
	urls := []string{s.Health.HTTP}
	for _, p := range s.Processes {
		if p.Sets != nil {
			ours = append(ours, p.Sets.IP.Prefix().Addr())
		}
		answers, urls = append(answers, p.Ready.TCP), append(urls, p.Ready.HTTP)
	}
	for _, u := range urls {
		if u != "" {
			answers = append(answers, addressOf(u))
		}
	}
	slices.Sort(answers)
	for _, address := range slices.Compact(answers) {
		if address == "" {
			continue
		}
		if stranger := who(address, since, ours); stranger != "" {
			return answeredBy(address, stranger)
		}
	}
	return nil
}

func answeredBy(address, stranger string) error {
	return fmt.Errorf("%s is answered by %s, which does not belong to this service", address, stranger)
}

// endOf is how the run ends with a program, with what kept that from being ready, if it shows.
func (r *Run) endOf(p part) error {
	ended := p.ended()
	select {
	case <-r.ready:
		return ended
	default:
	}
	if r.began == 0 || r.cfg.Conf.Replicated != nil { // it runs since another image of this process, or as a copy
		return ended
	}
	if why := taken(r.cfg.Conf, r.began, probe.Squatter); why != nil {
		return fmt.Errorf("%w; %w", ended, why)
	}
	return ended
}
