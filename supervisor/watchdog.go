package supervisor

// showWatchdog tells the observer about the device, once the guardians that feed it run.
func (s *supervisor) showWatchdog() {
	w := s.cfg.Watchdog
	if w == nil {
		return
	}
	mode := "automatic" // as the config calls it
	if w.Required {
		mode = "required"
	}
	s.cfg.Observer.Watchdog(w.Device, mode, s.guard.WatchdogArmed)
}
