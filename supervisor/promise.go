package supervisor

import "understudy/fencing/agent"

// promise is what the agent is asked for.
func (s *supervisor) promise(q agent.Pledge) error {
	err := s.promises.Give(q, s.cfg.Machine.Now())
	if err != nil {
		s.log.Info("asked for a promise, and gave none", "service", q.Service, "asked_by", q.By, "why", err)
		return err
	}
	s.log.Debug("promised not to start a service", "service", q.Service, "to", q.By, "its_token", q.Token, "for", q.For)
	return nil
}
